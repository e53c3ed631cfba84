import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startCommand, startProgram } from "../support/program.ts";
import { examplePath, makeReachableFolder, setStage, startExample } from "./kit.ts";

/* The examples that need nothing but ours. */

const stage = setStage();

test("batch jobs: on a server that the example starts and stops itself, only the item that failed is tried again", async () => {
  const folder = await makeReachableFolder();
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { code, stdout, stderr } = await startExample("batch-jobs/start.mjs", folder).ended;
  expect(stderr).toContain("Failed task");
  expect(code).toBe(0);
  const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("["));
  expect(lines).toEqual([
    '1 job with [{"to":"ada"},{"to":"bob"},{"to":"carol"}]',
    "A mail for ada",
    "A mail for bob",
    'Tried again: [{"to":"carol"}], because: Batch failures: carol cannot be reached',
    "A mail for carol",
    "Jobs left: 0",
  ]);
});

test("cron: a crontab runs by the clocks of its zones", async () => {
  const { code, stdout, stderr } = await stage.play("cron-time-zones/start.mjs");
  expect(stderr).toBe("");
  expect(stdout).toContain("  2031-03-31T09:00:00-04:00\n");
  expect(stdout).toContain("  2031-03-29T02:30:00+01:00\n  2031-03-30T03:00:00+02:00 (skipped)\n");
  expect(stdout).toMatch(/^It is 20\d\d-/m);
  expect(code).toBe(0);
});

test("triggers: a row that is kept leads to a job, one that is rolled back does not", async () => {
  const { code, stdout, stderr } = await stage.play("sql-triggers/start.mjs");
  expect(stderr).toBe("");
  expect(stdout.match(/^Welcome, .*$/gm)).toEqual(["Welcome, ada@example.com", "Welcome, last@example.com"]);
  expect(code).toBe(0);
});

test("a folder of TypeScript tasks runs from the command line as it stands, and the compiler accepts it", async () => {
  const cwd = examplePath("task-folder");
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  const compiler = startCommand(process.execPath, [tsc, "-p", "."], { cwd, input: "" });

  // The tasks are looked for in the current folder, where the test must not leave a server's files.
  const env = { DATABASE_URL: stage.connectionString() };
  const added = startProgram(["add", "users/greet", "--payload", '{"name":"Ada"}'], { cwd, env, input: "" });
  expect(await added.ended).toMatchObject({ code: 0 });
  const worker = startProgram([], { cwd, env });
  await worker.says(/Hello, Ada!/);
  await worker.says(/The sum is 4/);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
  expect(await compiler.ended).toMatchObject({ code: 0, stdout: "" });
});
