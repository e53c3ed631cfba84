import { now, sleep } from "../measure/clock.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";
import { withPgBouncer } from "../pgbouncer.mjs";
import { withProcesses } from "../worker-process.mjs";

/** So many jobs run at once, and are then cancelled one by one. */
const atOnce = 25;
/** A worker finds out that no notifications arrive within this time, and polls faster from then on. */
const deafAfterMs = 8_000;
const notMeasured = "a cancel that reaches a job running in another process is not part of it, or was not tried";

export const s17 = {
  name: "s17",
  title: "Cancel a job that runs in another process",
  about: "One process cancels, another works; from the moment before the call to the job's abort signal.",
  target: "p99 below 250 ms with LISTEN, and below one heartbeat (30 s) without",
  metrics: [
    { key: "p50", title: "p50 ms", better: "lower" },
    { key: "p99", title: "p99 ms", better: "lower" },
  ],
  lacks: { "graphile-worker": notMeasured, "pg-boss": notMeasured, bullmq: notMeasured },
  cases: ({ scale }) => [
    { title: "LISTEN", count: scale(500), given: {} },
    { title: "polling every 2 s", count: scale(50), given: { useNotifications: false } },
    {
      title: "both behind PgBouncer in transaction mode",
      count: scale(250),
      given: { noPreparedStatements: true },
      pooled: true,
    },
  ],
  measure: (context, { count, given, pooled }) =>
    withPlace(context, [], (direct) => {
      const settings = { ...context.system.settings(context.options), ...given, concurrency: atOnce };
      const measure = (place, restMs) => measureCancels(context.system, place, settings, count, restMs);
      return pooled ? withPgBouncer(direct, (place) => measure(place, deafAfterMs)) : measure(direct, 0);
    }),
};

async function measureCancels(system, place, settings, count, restMs) {
  return withProcesses([system.worker, system.worker], async ([worker, producer]) => {
    await worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "heed" });
    await sleep(restMs);
    for (let done = 0; done < count; done += atOnce) {
      const request = { mode: "cancelled", count: Math.min(atOnce, count - done), restMs: 20 };
      await producer.call("produce", { place: place.address, ...request });
      await heard(worker, Math.min(count, done + atOnce));
    }
    const { latencies } = await worker.call("record");
    await worker.call("stop");
    return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), maxMs: Math.max(...latencies) };
  });
}

/** Waits until so many jobs have heard that they are cancelled. */
async function heard(worker, count) {
  const until = now() + 20_000;
  for (;;) {
    const { latencies } = await worker.call("record");
    if (latencies.length >= count) return;
    if (now() > until) throw new Error(`Only ${latencies.length} of ${count} cancels were heard within 20 s.`);
    await sleep(20);
  }
}
