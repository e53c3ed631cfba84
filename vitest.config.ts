import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { FailedFiles } from "./test/support/failed-files.ts";
import { LongestFirst } from "./test/support/longest-first.ts";

export default defineConfig({
  resolve: {
    alias: { "@hathi/embedded": fileURLToPath(new URL("packages/embedded/src/index.ts", import.meta.url)) },
  },
  test: {
    include: ["test/**/*.test.ts", "packages/*/test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/seed.ts"],
    pool: "forks",
    // Most of the time goes to waiting for PostgreSQL, so a few more files than cores keep both busy.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    reporters: ["default", new FailedFiles()],
  },
});
