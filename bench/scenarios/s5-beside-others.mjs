import { drainFilled } from "../measure/drain-filled.mjs";

const kinds = [
  { title: "scheduled for later, same priority", plan: { inFuture: true } },
  { title: "scheduled for later, runs before by priority", plan: { inFuture: true, priority: -5 } },
  { title: "scheduled for later, runs after by priority", plan: { inFuture: true, priority: 5 } },
  { title: "due, of a task this worker lacks", plan: { task: "other" } },
  { title: "permanently failed", plan: { isDead: true } },
];

export const s5 = {
  name: "s5",
  title: "Drain 10,000 due jobs beside many others",
  about: "The others cannot run now and stay where they are.",
  target: "each case within 25 % of the drain on an otherwise empty table",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  cases: ({ scale }) => [
    { title: "no others", jobs: scale(10_000), others: [] },
    ...[100_000, 1_000_000].flatMap((count) =>
      kinds.map(({ title, plan }) => ({
        title: `${scale(count).toLocaleString("en")} ${title}`,
        jobs: scale(10_000),
        others: [{ count: scale(count), ...plan }],
      })),
    ),
  ],
  measure: (context, { jobs, others }) => drainFilled(context, [...others, { count: jobs }]),
};
