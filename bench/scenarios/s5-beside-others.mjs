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
  title: "Drain due jobs beside many others",
  about: "The others cannot run now and stay where they are. With 60,000 due jobs the start no longer counts for much.",
  target:
    "each case of 10,000 within 25 % of the drain on an otherwise empty table; 60,000 beside 300,000 of a task this worker lacks within 15 %",
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
    { title: "60,000 due, no others", jobs: scale(60_000), others: [] },
    {
      title: `60,000 due, ${scale(300_000).toLocaleString("en")} due, of a task this worker lacks`,
      jobs: scale(60_000),
      others: [{ count: scale(300_000), task: "other" }],
    },
  ],
  measure: (context, { jobs, others }) => drainFilled(context, [...others, { count: jobs }]),
};
