import { measureEnqueue } from "../measure/enqueue.mjs";

export const s2 = {
  name: "s2",
  title: "Enqueue",
  about: "One producing process, no worker running.",
  target: "at least 2 × graphile-worker one at a time, 6 × with 10 in flight, 1.3 × in batches",
  metrics: [{ key: "rate", title: "jobs/s", better: "higher" }],
  joins: ["ours-history-outcomes", "ours-history-full"],
  lacks: {
    "ours-safe": "adds exactly as the default does",
    "graphile-worker-tuned": "adds exactly as the default does",
  },
  cases: ({ quick, scale }) => {
    const forMs = quick ? 1000 : 5000;
    return [
      { title: "one at a time", mode: "single", inFlight: 1, forMs },
      { title: "10 in flight", mode: "single", inFlight: 10, forMs },
      { title: "batches of 1,000", mode: "batches", count: scale(100_000), batchSize: 1000 },
    ];
  },
  measure: (context, { title: _title, ...request }) => measureEnqueue(context, request),
};
