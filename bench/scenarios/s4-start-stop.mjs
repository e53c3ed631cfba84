import { sleep } from "../measure/clock.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { median } from "../measure/statistics.mjs";
import { withProcesses } from "../worker-process.mjs";

export const s4 = {
  name: "s4",
  title: "Start and stop",
  about:
    "`run()` until the one waiting job starts; `stop()` of an idle worker; both at once on an empty queue. The process is warm.",
  target: "at or below graphile-worker's",
  metrics: [
    { key: "firstJobMs", title: "start → first job ms", better: "lower" },
    { key: "stopMs", title: "stop ms", better: "lower" },
    { key: "bothMs", title: "start + stop ms", better: "lower" },
  ],
  cases: ({ quick }) => [{ title: "empty queue", repeats: quick ? 3 : 10 }],
  measure: (context, { repeats }) =>
    withPlace(context, [], (place) =>
      withProcesses([context.system.worker, context.system.worker], async ([worker, producer]) => {
        const times = { firstJobMs: [], stopMs: [], bothMs: [] };
        for (let i = 0; i <= repeats; i++) {
          const once = await startAndStop(context, place, worker, producer);
          // The first time loads code and is not repeated in the life of a process.
          if (i > 0) for (const key of Object.keys(times)) times[key].push(once[key]);
        }
        return Object.fromEntries(Object.entries(times).map(([key, values]) => [key, median(values)]));
      }),
    ),
};

async function startAndStop({ system, options }, place, worker, producer) {
  const request = { place: place.address, settings: system.settings(options), tasks: ["job"], behaviour: "noop" };
  await producer.call("produce", { place: place.address, mode: "spaced", count: 1, restMs: 0 });
  await worker.call("reset");
  const { calledAt } = await worker.call("start", request);
  const firstAt = await firstJob(worker);
  while ((await system.countLeft(place, { end: "gone" })) > 0) await sleep(2);
  const stopped = await worker.call("stop");
  const again = await worker.call("start", request);
  const stoppedAgain = await worker.call("stop");
  return {
    firstJobMs: firstAt - calledAt,
    stopMs: stopped.ms,
    bothMs: again.readyAt - again.calledAt + stoppedAgain.ms,
  };
}

async function firstJob(worker) {
  for (let tries = 0; tries < 5000; tries++) {
    const { firstAt } = await worker.call("record");
    if (firstAt !== undefined) return firstAt;
    await sleep(2);
  }
  throw new Error("The waiting job did not start within 10 s.");
}
