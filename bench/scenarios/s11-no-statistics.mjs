import { drain } from "../measure/drain.mjs";
import { withPlace } from "../measure/drain-filled.mjs";

export const s11 = {
  name: "s11",
  title: "Started right after a bulk insert, before any ANALYZE",
  about: "The planner still believes the table to be empty.",
  target: "within 25 % of the same drain with statistics",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  lacks: { "bullmq-redis": "Redis has no planner" },
  cases: ({ scale }) => [
    { title: "with statistics", jobs: scale(50_000), analyze: true },
    { title: "without statistics", jobs: scale(50_000), analyze: false },
  ],
  measure: (context, { jobs, analyze }) =>
    withPlace(context, [], async (place) => {
      await context.system.fill(place, { count: jobs });
      if (analyze) await place.query("vacuum (analyze)");
      return drain(context, place, { jobs });
    }),
};
