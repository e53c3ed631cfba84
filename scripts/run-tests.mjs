import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

/** More files than that do not fail by chance. */
const maxUnstable = 4;

/**
 * Runs the tests. On a build machine, files that fail run once more, each alone: a machine that stalls for seconds must not keep a good change
 * out. Files that passed only then are `unstable`; they are reported, since each hides a fault of the test or of the product.
 */
export function runTests({
  root,
  filters,
  environment,
  isRepeating = Boolean(process.env.CI && process.env.CI !== "false"),
}) {
  const folder = mkdtempSync(join(tmpdir(), "hathi-tests-"));
  const report = join(folder, "failed.json");
  const vitest = (args) => {
    const { status } = spawnSync("npx", ["--no-install", "vitest", "run", ...args], {
      cwd: root,
      stdio: "inherit",
      env: { ...process.env, ...environment, FAILED_FILES: report },
      shell: process.platform === "win32",
    });
    return status ?? 1;
  };
  try {
    const status = vitest(filters);
    const failed = status !== 0 && isRepeating && existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : null;
    if (failed === null || failed.length === 0 || failed.length > maxUnstable) return { status, unstable: [] };
    const files = failed.map((path) => relative(root, path));
    for (const file of files) {
      console.log(`\n${file} failed; it runs once more, alone.`);
      if (vitest([file]) !== 0) return { status, unstable: [] };
    }
    return { status: 0, unstable: files };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
