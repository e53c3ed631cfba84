import { existsSync } from "node:fs";
import { graphileTables } from "./graphile-worker.mjs";

const ours = {
  family: "ours",
  schema: "ours",
  worker: "ours.mjs",
  claims: /skip locked|claim/i,
  ...graphileTables,
  whyNot: () =>
    existsSync(new URL("../../dist/index.js", import.meta.url)) ? undefined : "dist/index.js is not built",
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
