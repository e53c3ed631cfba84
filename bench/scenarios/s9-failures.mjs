import { drainFilled } from "../measure/drain-filled.mjs";

export const s9 = {
  name: "s9",
  title: "20,000 jobs that all fail once",
  about: "Each throws; it counts once the database knows and it is scheduled for its next attempt.",
  target: "at least 3 × graphile-worker tuned",
  metrics: [{ key: "rate", title: "failures/s", better: "higher" }],
  joins: ["ours-controlled", "ours-history-outcomes", "ours-history-full"],
  cases: ({ scale }) => [{ title: "1 process", jobs: scale(20_000) }],
  measure: (context, { jobs }) => drainFilled(context, [{ count: jobs }], { behaviour: "fail", end: "failed once" }),
};
