import { defineConfig, mergeConfig } from "vitest/config";
import everything from "../../vitest.config.ts";

// What `npm run soak` runs; it is no part of the suite.
const { test, ...rest } = everything;
export default mergeConfig(
  defineConfig(rest),
  defineConfig({ test: { ...test, include: ["test/chaos/soak.ts"], testTimeout: 0 } }),
);
