import { addAndWait } from "../measure/add-and-wait.mjs";
import { now, sleep } from "../measure/clock.mjs";
import { drain } from "../measure/drain.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";
import { withProcesses } from "../worker-process.mjs";

export const s7 = {
  name: "s7",
  title: "A transaction held open while jobs churn",
  about:
    "No dead row can be cleaned up. First a drain with none in the way, then one with 200,000 of them ahead (worker freshly started), " +
    "then 200,000 jobs in a row with the rate of the first and the last tenth of what was done in time. Last, how soon a single job starts " +
    "after 200,000 have gone through (or as many as did in time), with the transaction and without.",
  target:
    "rate at the end at least 70 % of the rate at the start; a single job starts after at most twice the time it takes without",
  metrics: [
    { key: "rate", title: "jobs/s", better: "higher" },
    { key: "firstRate", title: "first tenth jobs/s", better: "higher" },
    { key: "lastRate", title: "last tenth jobs/s", better: "higher" },
    { key: "lastToFirst", title: "last / first", better: "higher" },
    { key: "pickup", title: "pickup p50 ms", better: "lower" },
  ],
  cases: ({ scale }) => [
    { title: "no dead rows", jobs: scale(10_000), dead: 0 },
    { title: `${scale(200_000).toLocaleString("en")} dead rows ahead`, jobs: scale(10_000), dead: scale(200_000) },
    { title: `${scale(200_000).toLocaleString("en")} jobs in a row`, jobs: scale(200_000), dead: 0, inARow: true },
    { title: "a single job after 200,000, vacuum free", jobs: scale(200_000), isPinned: false, singles: scale(200) },
    {
      title: "a single job after 200,000, transaction held",
      jobs: scale(200_000),
      isPinned: true,
      singles: scale(200),
    },
  ],
  measure: (context, testCase) =>
    testCase.singles ? measurePickup(context, testCase) : measureDrain(context, testCase),
};

function measureDrain(context, { jobs, dead, inARow }) {
  return withPlace(context, [], async (place) => {
    const holder = await place.connect();
    await holder.query("begin isolation level repeatable read; select pg_current_xact_id()");
    try {
      if (dead > 0) await context.system.churn(place, dead);
      await context.system.fill(place, { count: jobs });
      await place.query("analyze");
      const result = await drain(context, place, { jobs, filler: dead });
      return { ...result, ...(inARow && rateOverTime(result.samples)) };
    } finally {
      await holder.query("rollback");
      holder.release();
    }
  });
}

function measurePickup(context, { jobs, isPinned, singles }) {
  return withPlace(context, [], (place) =>
    withProcesses([context.system.worker, context.system.worker], async ([worker, producer]) => {
      const holder = await place.connect();
      if (isPinned) await holder.query("begin isolation level repeatable read; select pg_current_xact_id()");
      try {
        await context.system.fill(place, { count: jobs });
        const settings = context.system.settings(context.options);
        await worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "stamp" });
        const until = now() + context.options.limitMs;
        while ((await worker.call("ran")) < jobs && now() < until) await sleep(20);
        await context.system.removeWaiting?.(place);
        if (!isPinned) await place.query("vacuum analyze");
        await sleep(500);
        await worker.call("reset");
        await addAndWait(worker, producer, place, { mode: "spaced", count: singles, restMs: 30 });
        const { latencies } = await worker.call("record");
        await worker.call("stop");
        return { pickup: percentile(latencies, 0.5), pickupP99: percentile(latencies, 0.99) };
      } finally {
        if (isPinned) await holder.query("rollback");
        holder.release();
      }
    }),
  );
}

/** The rates of the first and the last tenth of what was done. */
function rateOverTime(samples) {
  const total = samples.at(-1)?.ran ?? 0;
  const rate = (from, to) => (to - from) / ((timeOf(samples, to) - timeOf(samples, from)) / 1000);
  const [firstRate, lastRate] = [rate(total * 0.02, total * 0.12), rate(total * 0.9, total)];
  return { firstRate, lastRate, lastToFirst: lastRate / firstRate };
}

/** When so many jobs had run, between the two samples around that number. */
function timeOf(samples, ran) {
  const next = samples.findIndex((sample) => sample.ran >= ran);
  if (next <= 0) return samples[Math.max(next, 0)]?.at;
  const [before, after] = [samples[next - 1], samples[next]];
  return before.at + ((ran - before.ran) / (after.ran - before.ran)) * (after.at - before.at);
}
