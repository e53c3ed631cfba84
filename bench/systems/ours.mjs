import { graphileTables } from "./graphile-worker.mjs";

const ours = {
  family: "ours",
  schema: "ours",
  worker: "ours.mjs",
  claims: /skip locked|claim/i,
  ...graphileTables,
  whyNot: () => whyNot(),
};

export const oursDefault = {
  ...ours,
  name: "ours",
  title: "Hathi",
  settings: ({ concurrency }) => ({ concurrency }),
};

export const oursSafe = {
  ...ours,
  name: "ours-safe",
  title: "Hathi, all safety on",
  settings: ({ concurrency }) => ({ concurrency, recovery: true }),
};

async function whyNot() {
  try {
    const { run, makeWorkerUtils } = await import("../../dist/index.js");
    return run && makeWorkerUtils ? undefined : "dist/index.js has no `run` or no `makeWorkerUtils`";
  } catch (error) {
    return `dist/index.js does not load (${error.message})`;
  }
}
