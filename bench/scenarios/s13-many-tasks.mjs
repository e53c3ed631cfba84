import { drainFilled } from "../measure/drain-filled.mjs";
import { spreadTasks } from "../places.mjs";

export const s13 = {
  name: "s13",
  title: "50,000 jobs over 20 tasks × 5 priorities",
  about: "All due, spread evenly.",
  target: "at least 1.4 × graphile-worker tuned",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  cases: ({ scale }) => [{ title: "1 process", jobs: scale(50_000) }],
  measure: (context, { jobs }) =>
    drainFilled(context, [{ count: jobs, tasks: spreadTasks.length, priorities: 5 }], { tasks: spreadTasks }),
};
