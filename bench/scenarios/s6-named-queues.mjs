import { drain } from "../measure/drain.mjs";
import { drainFilled, withPlace } from "../measure/drain-filled.mjs";

export const s6 = {
  name: "s6",
  title: "Named queues",
  about:
    "Jobs of one queue run strictly one after another. The stuck jobs belong to two queues that another worker holds.",
  target: "no case below half of the un-queued rate; the stuck case within 25 % of the un-stuck",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  cases: ({ scale }) => [
    { title: "no queue", jobs: scale(10_000), queues: 0 },
    ...[1, 10, 1000, 10_000].map((queues) => ({
      title: queues === 1 ? "1 queue" : `${queues.toLocaleString("en")} queues`,
      jobs: scale(10_000),
      queues,
    })),
    { title: "free jobs, nothing stuck", jobs: scale(50_000), queues: 0 },
    {
      title: "free jobs beside twice as many stuck behind two held queues",
      jobs: scale(50_000),
      stuck: scale(100_000),
    },
  ],
  measure: (context, { jobs, queues, stuck }) =>
    stuck ? drainBesideStuck(context, jobs, stuck) : drainFilled(context, [{ count: jobs, queues }]),
};

function drainBesideStuck(context, jobs, stuck) {
  return withPlace(context, [{ count: stuck, queues: 2 }, { count: jobs }], async (place) => {
    await context.system.holdQueues(place);
    return drain(context, place, { jobs, filler: stuck });
  });
}
