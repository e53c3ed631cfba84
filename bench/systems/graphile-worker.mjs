import {
  churnGraphile,
  countLeftGraphile,
  fillGraphile,
  holdQueuesGraphile,
  removeWaitingGraphile,
} from "./graphile-tables.mjs";

export const graphileTables = {
  fill: fillGraphile,
  countLeft: countLeftGraphile,
  holdQueues: holdQueuesGraphile,
  churn: churnGraphile,
  removeWaiting: removeWaitingGraphile,
};

const graphileWorker = {
  family: "graphile-worker",
  package: "graphile-worker",
  schema: "graphile",
  worker: "graphile-worker.mjs",
  claims: /skip locked/i,
  ...graphileTables,
};

export const graphileDefault = {
  ...graphileWorker,
  name: "graphile-worker",
  title: "graphile-worker",
  settings: ({ concurrency }) => ({ concurrency }),
};

/** Its fastest. In this mode it does not retry a failed write. */
export const graphileTuned = {
  ...graphileWorker,
  name: "graphile-worker-tuned",
  title: "graphile-worker, tuned",
  settings: () => ({
    concurrency: 24,
    preset: { worker: { localQueue: { size: 2000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  }),
};
