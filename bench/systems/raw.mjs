import { graphileDefault } from "./graphile-worker.mjs";

const raw = {
  ...graphileDefault,
  family: "raw",
  package: undefined,
  worker: "raw.mjs",
  // The schema is graphile-worker's own, installed by its own worker.
  installer: graphileDefault.worker,
};

export const rawDrain = {
  ...raw,
  name: "raw-drain",
  title: "limit: raw claim and delete",
  settings: () => ({ connections: 2, batchSize: 500 }),
};

export const rawNotify = {
  ...raw,
  name: "raw-notify",
  title: "floor: raw notify and claim",
  settings: () => ({ connections: 2, batchSize: 10, listen: true }),
};
