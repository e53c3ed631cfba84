import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Writes the files that failed, as JSON, to `FAILED_FILES`; null if something failed that belongs to no file. */
export class FailedFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const report = process.env.FAILED_FILES;
    if (!report) return;
    const failed = modules.filter((module) => !module.ok()).map(({ moduleId }) => moduleId);
    const blamed = unhandled.map(({ VITEST_TEST_PATH: path }) => path as string | undefined);
    writeFileSync(report, JSON.stringify(blamed.includes(undefined) ? null : [...new Set([...failed, ...blamed])]));
  }
}
