import { sleep } from "../measure/clock.mjs";
import { drainFilled, withPlace } from "../measure/drain-filled.mjs";
import { withProcesses } from "../worker-process.mjs";

export const s10 = {
  name: "s10",
  title: "Memory of one worker process",
  about: "Resident memory when idle, and its peak while draining trivial jobs and jobs with payloads of 100 kB.",
  target: "at or below graphile-worker's; prefetched payloads within a byte budget",
  metrics: [{ key: "rssMb", title: "RSS MB", better: "lower" }],
  lacks: { bullmq: "filled through its API with small payloads only" },
  cases: ({ scale }) => [
    { title: "idle", idle: true },
    // As many as every system gets done: memory grows with the jobs that went through.
    { title: "draining 15,000 trivial jobs (peak)", plan: { count: scale(15_000) } },
    { title: "draining 100,000 trivial jobs (peak)", plan: { count: scale(100_000) } },
    { title: "draining 5,000 jobs of 100 kB (peak)", plan: { count: scale(5000), payloadBytes: 100_000 } },
  ],
  measure: (context, { idle, plan }) => (idle ? measureIdle(context) : drainFilled(context, [plan])),
};

function measureIdle({ system, options, ...rest }) {
  return withPlace({ system, ...rest }, [], (place) =>
    withProcesses([system.worker], async ([worker]) => {
      await worker.call("start", {
        place: place.address,
        settings: system.settings(options),
        tasks: ["job"],
        behaviour: "noop",
      });
      await sleep(3000);
      const { rssMb } = await worker.call("usage");
      await worker.call("stop");
      return { rssMb };
    }),
  );
}
