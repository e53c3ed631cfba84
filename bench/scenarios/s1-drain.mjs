import { drainFilled } from "../measure/drain-filled.mjs";

export const s1 = {
  name: "s1",
  title: "Drain 100,000 trivial jobs",
  about: "Jobs that do nothing, all due, one task, no queue; statistics are fresh.",
  target: "at least 1.4 × graphile-worker tuned, 20 × its default and 70 % of the raw limit",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  joins: [
    "raw-drain",
    "ours-controlled",
    "ours-history-outcomes",
    "ours-history-full",
    "ours-metrics",
    "bullmq-postgres-keeping",
    "bullmq-redis-keeping",
  ],
  cases: ({ scale }) =>
    [1, 2, 4].map((processes) => ({
      title: processes === 1 ? "1 process" : `${processes} processes`,
      jobs: scale(100_000),
      processes,
    })),
  measure: (context, { jobs, processes }) => drainFilled(context, [{ count: jobs }], { processes }),
};
