import { addAndWait } from "../measure/add-and-wait.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";
import { withProcesses } from "../worker-process.mjs";

export const s3 = {
  name: "s3",
  title: "Latency from add to start",
  about: "One process adds, another works; from the moment before the add to the first line of the job.",
  target: "p50 and p99 at or below graphile-worker's, at most 2 × the raw floor",
  metrics: [
    { key: "p50", title: "p50 ms", better: "lower" },
    { key: "p99", title: "p99 ms", better: "lower" },
  ],
  joins: ["raw-notify", "ours-history-outcomes", "ours-history-full"],
  cases: ({ scale }) => [
    { title: "idle", request: { mode: "spaced", count: scale(1000), restMs: 10 } },
    { title: "500 jobs/s", request: { mode: "steady", count: scale(5000), perSecond: 500 } },
  ],
  measure: (context, { request }) =>
    withPlace(context, [], (place) =>
      withProcesses([context.system.worker, context.system.worker], async ([worker, producer]) => {
        const settings = context.system.settings(context.options);
        await worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "stamp" });
        // The first jobs warm up connections and statements on both sides.
        await addAndWait(worker, producer, place, { mode: "spaced", count: 50, restMs: 5 });
        await worker.call("reset");
        await addAndWait(worker, producer, place, request);
        const { latencies } = await worker.call("record");
        await worker.call("stop");
        return {
          p50: percentile(latencies, 0.5),
          p99: percentile(latencies, 0.99),
          maxMs: Math.max(...latencies),
        };
      }),
    ),
};
