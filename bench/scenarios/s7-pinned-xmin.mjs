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
  ],
  cases: ({ scale }) => [
    { title: "no dead rows", jobs: scale(10_000), dead: 0 },
    { title: `${scale(200_000).toLocaleString("en")} dead rows ahead`, jobs: scale(10_000), dead: scale(200_000) },
    { title: `${scale(200_000).toLocaleString("en")} jobs in a row`, jobs: scale(200_000), dead: 0 },
  ],
  measure: (context, { jobs, dead }) =>
    withPlace(context, [], async (place) => {
      const holder = await place.connect();
      await holder.query("begin isolation level repeatable read; select pg_current_xact_id()");
      try {
        if (dead > 0) await context.system.churn(place, dead);
        await context.system.fill(place, { count: jobs });
        await place.query("analyze");
        const result = await drain(context, place, { jobs, filler: dead });
        return { ...result, ...rateOverTime(result.samples) };
      } finally {
        await holder.query("rollback");
        holder.release();
      }
    }),
};

function rateOverTime(samples) {
  const total = samples.at(-1)?.ran ?? 0;
  const within = (from, to) => {
    const part = samples.filter(({ ran }) => ran >= from && ran <= to);
    const [first, last] = [part[0], part.at(-1)];
    return part.length > 1 ? (last.ran - first.ran) / ((last.at - first.at) / 1000) : undefined;
  };
  return { firstRate: within(0, total * 0.1), lastRate: within(total * 0.9, total) };
}
