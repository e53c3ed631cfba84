import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { hasProgram } from "../support/has-program.ts";
import { mainFile, type ProgramOptions, type RunningProgram, startCommand } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { startWorker } from "../worker/kit.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const hasPython = hasProgram("python3");
beforeEach(({ skip }) => skip(!hasPython, "python3 is not installed here, so nothing is shown about terminals"));

/** The program in a pseudo-terminal: both its streams come back as one, and what is written goes to its keyboard. */
function startInTerminal(args: readonly string[], options: ProgramOptions): RunningProgram {
  const script = fileURLToPath(new URL("../support/pseudo-terminal.py", import.meta.url));
  return startCommand("python3", [script, process.execPath, mainFile, ...args], {
    ...options,
    env: { TERM: "xterm-256color", DATABASE_URL: "", ...options.env },
  });
}

const seed = `
  select graphile_worker.add_job('email', max_attempts => 1) from generate_series(1, 3);
  update graphile_worker._private_jobs set attempts = 1, last_error = 'kaboom'`;

test("a terminal gets colours, and NO_COLOR takes them away", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({
    "tasks/email.mjs": "export default (payload, helpers) => helpers.logger.info('sent');",
  });
  const env = { DATABASE_URL: db.url };
  await db.query("select graphile_worker.add_job('email')");
  const list = await startInTerminal(["list"], { cwd, env }).ended;
  expect(list.stdout).toContain("\x1b[32mwaiting\x1b[39m");
  const worker = await startInTerminal(["--once"], { cwd, env }).ended;
  expect(worker.stdout).toContain("\x1b[36memail\x1b[39m");
  expect(worker.stdout).toMatch(/Completed task 1 \(email, \d+\.\d+ms\) with success/);
  await db.query("select graphile_worker.add_job('email')");
  const plain = await startInTerminal(["--once"], { cwd, env: { ...env, NO_COLOR: "1" } }).ended;
  expect(plain.stdout).toContain("sent");
  expect(plain.stdout).not.toContain("\x1b[");
});

test("a bulk action asks in a terminal, and does nothing on a no", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const env = { DATABASE_URL: db.url };
  await db.query(seed);
  const args = ["retry", "--state", "dead"];

  const no = startInTerminal(args, { cwd, env });
  await no.says(/Retry 3 jobs\? \[y\/N\]/);
  no.child.stdin?.write("n\r");
  expect(await no.ended).toMatchObject({ code: 1, stdout: expect.stringContaining("Nothing was changed.") });
  expect(await db.job(1)).toMatchObject({ attempts: 1 });

  const yes = startInTerminal(args, { cwd, env });
  await yes.says(/kaboom[\s\S]*Retry 3 jobs\? \[y\/N\]/);
  yes.child.stdin?.write("y\r");
  expect(await yes.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("3 jobs set to run again.") });
  expect(await db.job(1)).toMatchObject({ attempts: 0 });
});

test.each([
  ["y", ".ts"],
  ["n", ".mjs"],
  ["", ".mjs"],
])("init asks for the language in a terminal, and follows the answer '%s'", async (answer, extension) => {
  const { folder: cwd } = await makeProject();
  const init = startInTerminal(["init"], { cwd });
  await init.says(/Write TypeScript\? Without it you get JavaScript\. \[y\/N\]/);
  expect(await readdir(cwd)).toEqual([]);
  init.child.stdin?.write(`${answer}\r`);
  const { code, stdout } = await init.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`wrote tasks/hello${extension}`) });
  expect((await readdir(cwd)).sort()).toEqual([".gitignore", "crontab", `hathi.config${extension}`, "tasks"]);
  expect(await readdir(`${cwd}/tasks`)).toEqual([`hello${extension}`]);
});

test("Ctrl-C at init's question writes nothing", async () => {
  const { folder: cwd } = await makeProject();
  const init = startInTerminal(["init"], { cwd });
  await init.says(/Write TypeScript\?/);
  init.child.stdin?.write("\x03");
  expect((await init.ended).code).not.toBe(0);
  expect(await readdir(cwd)).toEqual([]);
});

test("long work shows how far it is", async () => {
  const db = await freshDatabase();
  const line = `${JSON.stringify({ task: "email" })}\n`;
  const { folder: cwd } = await makeProject({ "jobs.ndjson": line.repeat(6_000) });
  const env = { DATABASE_URL: db.url };
  const added = await startInTerminal(["add", "--file", "jobs.ndjson"], { cwd, env }).ended;
  expect(added.stdout).toContain("5,000 jobs…");
  expect(added.stdout).toContain("6,000 jobs added.");
  const failed = await startInTerminal(["fail", "--task", "email", "--yes"], { cwd, env }).ended;
  expect(failed.stdout).toContain("1,000 of 6,000 jobs…");
  expect(failed.stdout).toContain("6,000 jobs failed.");
});

test("Ctrl-C in a terminal drains the worker and ends it with 0", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({ "tasks/email.mjs": "export default () => undefined;" });
  const worker = startInTerminal([], { cwd, env: { DATABASE_URL: db.url } });
  await worker.says(/looking for jobs/);
  worker.child.stdin?.write("\x03");
  expect(await worker.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Received 'SIGINT'") });
});

test.each([80, 120])("tables fit a terminal of %d columns", async (columns) => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const env = { DATABASE_URL: db.url, COLUMNS_OF_TERMINAL: String(columns), NO_COLOR: "1" };
  await db.query(`
    select graphile_worker.add_job('newsletters/send-to-all-customers', queue_name => 'a-queue-with-a-long-name-for-newsletters',
      job_key => 'newsletter:2026-11:all-customers:' || i, max_attempts => 1) from generate_series(1, 3) as i;
    update graphile_worker._private_jobs set attempts = 1, last_error = repeat('connect ECONNREFUSED ', 9) where id = 1;
    update graphile_worker._private_job_queues set locked_by = 'worker-with-a-very-long-name-' || repeat('x', 40), locked_at = now()`);
  for (const command of ["list", "queues", "workers", "stats"]) {
    const { stdout, code } = await startInTerminal([command], { cwd, env }).ended;
    expect(code, stdout).toBe(0);
    const table = stdout.split("\r\n").filter((line) => !line.startsWith("Using database"));
    for (const line of table) expect(line.length, `${command}: ${line}`).toBeLessThanOrEqual(columns);
    if (command === "list") expect(stdout).toContain("…");
  }
});

test("tables of what is kept beside the jobs fit a terminal of 80 columns, too", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject();
  const env = { DATABASE_URL: db.url, COLUMNS_OF_TERMINAL: "80", NO_COLOR: "1" };
  const long = (name: string): string => `${name}-${"with-a-long-name-".repeat(5)}`;
  const task = long("task");
  await db.query("select graphile_worker.add_job($1, job_key => $2, queue_name => $3, max_attempts => 1)", [
    task,
    long("key"),
    long("queue"),
  ]);
  const refuse = (): never => {
    throw new Error("connect ECONNREFUSED ".repeat(9));
  };
  const worker = await startWorker(
    db,
    { [task]: refuse },
    {
      history: "full",
      recovery: true,
      limits: { [long("limit")]: { concurrency: 3 } },
      taskOptions: { [task]: { limits: [long("limit")] } },
    },
  );
  await worker.completed(1);
  const utils = await utilsOf(db);
  for (const target of [{ task }, { queue: long("queue") }, { worker: long("worker") }]) {
    await utils.pause(target, { reason: long("reason"), by: long("by") });
  }
  await utils.setLimit(long("limit"), { limit: 2 });
  const { id } = await utils.beginAction({ action: "retry", by: long("by"), target: { task } });
  await utils.reportAction(id, { changed: 1, outcome: "failed", message: long("message") });
  await db.query("insert into graphile_worker._private_known_crontabs values ($1, now(), now())", [long("cron")]);
  for (const command of [["history"], ["errors"], ["limits"], ["pauses"], ["audit"], ["workers"], ["cron", "list"]]) {
    const { stdout, code } = await startInTerminal(command, { cwd, env }).ended;
    expect(code, stdout).toBe(0);
    const table = stdout.split("\r\n").filter((line) => !line.startsWith("Using database"));
    expect(table.length, stdout).toBeGreaterThan(2);
    for (const line of table) expect(line.length, `${command.join(" ")}: ${line}`).toBeLessThanOrEqual(80);
  }
});
