import { drain } from "../measure/drain.mjs";
import { withPlace } from "../measure/drain-filled.mjs";

export const s7 = {
  name: "s7",
  title: "A transaction held open while jobs churn",
  about:
    "No dead row can be cleaned up. First a drain with none in the way, then one with 200,000 of them ahead (worker freshly started), " +
    "then 200,000 jobs in a row with the rate of the first and the last tenth of what was done in time.",
  target: "rate at the end at least 70 % of the rate at the start",
  metrics: [
    { key: "rate", title: "jobs/s", better: "higher" },
    { key: "firstRate", title: "first tenth jobs/s", better: "higher" },
    { key: "lastRate", title: "last tenth jobs/s", better: "higher" },
    { key: "lastToFirst", title: "last / first", better: "higher" },
  ],
  cases: ({ scale }) => [
    { title: "no dead rows", jobs: scale(10_000), dead: 0 },
    { title: `${scale(200_000).toLocaleString("en")} dead rows ahead`, jobs: scale(10_000), dead: scale(200_000) },
    { title: `${scale(200_000).toLocaleString("en")} jobs in a row`, jobs: scale(200_000), dead: 0, inARow: true },
  ],
  measure: (context, { jobs, dead, inARow }) =>
    withPlace(context, [], async (place) => {
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
    }),
};

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
