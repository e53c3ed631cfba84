import { drainFilled } from "../measure/drain-filled.mjs";
import { longestNeedlessWait } from "../measure/needless-wait.mjs";
import { percentile } from "../measure/statistics.mjs";

const sleeps = Array.from({ length: 97 }, (_, i) =>
  i % 24 === 5 ? [200, 500, 2000, 5000][Math.floor(i / 24) % 4] : i % 3,
);

export const s12 = {
  name: "s12",
  title: "Slow jobs among fast ones, two processes",
  about:
    "Every 24th job takes 200 ms to 5 s, the others 0 to 2 ms. For each job: the longest stretch it lay claimed in one process while the other had a free slot.",
  target: "never longer than 100 ms",
  metrics: [
    { key: "worstMs", title: "worst needless wait ms", better: "lower" },
    { key: "p99Ms", title: "p99 ms", better: "lower" },
    { key: "seconds", title: "all done s", better: "lower" },
  ],
  cases: ({ scale }) => [{ title: "2 processes", jobs: scale(4000) }],
  measure: async (context, { jobs }) => {
    const patient = { ...context, options: { ...context.options, limitMs: 180_000 } };
    const result = await drainFilled(patient, [{ count: jobs, sleeps }], {
      processes: 2,
      behaviour: "sleep",
      keepRecords: true,
    });
    const slots = context.system.settings(context.options).concurrency;
    const waits = longestNeedlessWait(result.records, slots);
    return {
      worstMs: Math.max(0, ...waits),
      p99Ms: percentile(waits, 0.99),
      seconds: result.done / result.rate,
      nodeCpuUs: result.nodeCpuUs,
    };
  },
};
