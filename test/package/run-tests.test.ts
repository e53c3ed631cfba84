import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runTests } from "../../scripts/run-tests.mjs";

/** A stand-in for vitest: each run takes the next of these results. */
interface Run {
  readonly status: number;
  readonly failed?: readonly string[] | null;
}

function runWith(runs: readonly Run[], isRepeating = true): { result: ReturnType<typeof runTests>; calls: string[] } {
  const root = mkdtempSync(join(tmpdir(), "hathi-run-tests-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const steps = runs.map(({ status, failed }, index) => {
    const report = failed === undefined ? "" : `printf '%s' '${JSON.stringify(failed)}' > "$FAILED_FILES"; `;
    return `${index}) ${report}exit ${status} ;;`;
  });
  const calls = join(root, "calls");
  writeFileSync(calls, "");
  writeFileSync(
    join(root, "npx"),
    `#!/bin/sh\ncount=$(wc -l < '${calls}')\necho "$*" >> '${calls}'\ncase $((count)) in\n${steps.join("\n")}\nesac\nexit 99\n`,
  );
  chmodSync(join(root, "npx"), 0o755);
  const environment = { PATH: `${root}${delimiter}${process.env.PATH}` };
  const result = runTests({ root, filters: ["some"], environment, isRepeating });
  return { result, calls: readFileSync(calls, "utf8").trim().split("\n") };
}

const first = "--no-install vitest run some";

test("files that failed run once more, each alone, and are named if they pass", () => {
  const { result, calls } = runWith([{ status: 1, failed: ["a.test.ts", "b.test.ts"] }, { status: 0 }, { status: 0 }]);
  expect(result.status).toBe(0);
  expect(result.unstable.map((file) => file.replace(/^.*\//, ""))).toEqual(["a.test.ts", "b.test.ts"]);
  expect(calls).toHaveLength(3);
});

test("a file that fails again fails the run", () => {
  const { result, calls } = runWith([{ status: 1, failed: ["a.test.ts"] }, { status: 1 }]);
  expect(result).toEqual({ status: 1, unstable: [] });
  expect(calls).toHaveLength(2);
});

test.each<[string, Run, boolean]>([
  ["many files failed", { status: 1, failed: ["a", "b", "c", "d", "e"] }, true],
  ["an error belongs to no file", { status: 1, failed: null }, true],
  ["the run ended without a report", { status: 3 }, true],
  ["nothing failed but the run", { status: 1, failed: [] }, true],
  ["it is not a build machine", { status: 1, failed: ["a.test.ts"] }, false],
])("nothing is repeated if %s", (_, run, isRepeating) => {
  const { result, calls } = runWith([run], isRepeating);
  expect(result).toEqual({ status: run.status, unstable: [] });
  expect(calls).toEqual([first]);
});
