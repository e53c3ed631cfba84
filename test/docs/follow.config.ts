import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// What 'npm run follow' runs: one thing after the other, in homes that are really empty.
export default defineConfig({
  resolve: {
    alias: { "@hathi/embedded": fileURLToPath(new URL("../../packages/embedded/src/index.ts", import.meta.url)) },
  },
  test: {
    include: ["test/docs/readme.test.ts", "test/docs/first-command.test.ts", "test/docs/second-command.follow.ts"],
    pool: "forks",
    maxWorkers: 1,
    // A clone with all its packages is removed in more than a moment.
    hookTimeout: 300_000,
    teardownTimeout: 30_000,
    env: { FOLLOW_FRESH: "1" },
  },
});
