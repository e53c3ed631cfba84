import { expect, onTestFinished, test, vi } from "vitest";
import { loadOriginal } from "../compat/original.ts";
import { runCommand } from "../support/command.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { originalSchema } from "../support/original-schema.ts";
import { mainFile, type ProgramEnd, runProgram, startCommand, startProgram } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

interface Desk {
  readonly db: TestDatabase;
  readonly project: Project;
  /** Runs a command to its end. */
  hathi(...args: string[]): Promise<ProgramEnd>;
  /** Runs a command that must succeed, and gives what it printed. */
  ask(...args: string[]): Promise<string>;
  askJson<T = unknown>(...args: string[]): Promise<T>;
}

async function openDesk(files: Record<string, string> = {}): Promise<Desk> {
  const db = await freshDatabase();
  const project = await makeProject(files);
  const hathi = (...args: string[]): Promise<ProgramEnd> =>
    runCommand(args, { cwd: project.folder, env: { DATABASE_URL: db.url } });
  const ask = async (...args: string[]): Promise<string> => {
    const end = await hathi(...args);
    expect(end.code, end.stderr).toBe(0);
    return end.stdout;
  };
  return { db, project, hathi, ask, askJson: async (...args) => JSON.parse(await ask(...args, "--json")) };
}

const seed = async (db: TestDatabase): Promise<void> => {
  await db.query(
    `select graphile_worker.add_job('email', json_build_object('n', i), priority => 1) from generate_series(1, 3) as i`,
  );
  await db.query(
    `select graphile_worker.add_job('report', queue_name => 'slow', job_key => 'monthly', run_at => now() + interval '1 day')`,
  );
  await db.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'kaboom' where id <= 2",
  );
};
const ids = (page: { jobs: { id: string }[] }): string[] => page.jobs.map(({ id }) => id);

test("add takes every option of a job, and says what it did", async () => {
  const { db, ask, askJson, hathi, project } = await openDesk({ "payload.json": '{"from":"a file"}' });
  expect(await ask("add", "email", "--payload", '{"to":"Ada"}')).toBe("Job 1 (email) added.\n");
  const job = await askJson(
    ...["add", "email", "--payload-file", "payload.json", "--queue", "q", "--run-at", "2100-01-01T00:00:00Z"],
    ...[
      "--priority",
      "-3",
      "--max-attempts",
      "4",
      "--key",
      "k",
      "--job-key-mode",
      "preserve-run-at",
      "--flag",
      "a",
      "--flag",
      "b",
    ],
  );
  expect(job).toMatchObject({
    id: "2",
    task_identifier: "email",
    priority: -3,
    max_attempts: 4,
    key: "k",
    flags: { a: true, b: true },
  });
  expect(await db.job(2)).toMatchObject({
    payload: { from: "a file" },
    queue_name: "q",
    run_at: new Date("2100-01-01"),
  });
  expect(await ask("add", "email", "--key", "k")).toBe("Job 2 (email) updated.\n");
  expect(await hathi("add")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Give either the task of a job"),
  });
  expect(await hathi("add", "x", "--job-key-mode", "replace")).toMatchObject({
    code: 1,
    stderr: "--job-key-mode needs --key.\n",
  });
  expect(await hathi("add", "x", "--payload", "{oops")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The payload is not JSON/),
  });
  expect(await hathi("add", "x", "--run-at", "soon")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^--run-at must be a date/),
  });
  expect(project.folder).toBeTruthy();
});

test("add --file adds all jobs of a file, or none of them", async () => {
  const lines = Array.from({ length: 12_000 }, (_, index) =>
    JSON.stringify({ task: `task_${index % 3}`, payload: { index } }),
  );
  const { db, project, ask, hathi } = await openDesk({ "jobs.ndjson": `${lines.join("\n")}\n` });
  expect(await ask("add", "--file", "jobs.ndjson")).toBe("12,000 jobs added.\n");
  await project.write("bad.ndjson", `${lines.join("\n")}\n{"task":"x","playload":1}\n`);
  const end = await hathi("add", "--file", "bad.ndjson");
  expect(end).toMatchObject({ code: 1, stderr: "bad.ndjson:12001: unknown key 'playload'. Did you mean 'payload'?\n" });
  const [{ count }] = (await db.query<{ count: string }>("select count(*) from graphile_worker._private_jobs")) as [
    { count: string },
  ];
  expect(count).toBe("12000");
  const fromStdin = await runProgram(["add", "--file", "-", "--json"], {
    cwd: project.folder,
    env: { DATABASE_URL: db.url },
    input: '{"task":"x","queue":"q","key":"k","runAt":"2100-01-01","priority":1,"maxAttempts":2,"flags":["f"]}\n',
  });
  expect(fromStdin).toMatchObject({ code: 0, stdout: '{"added":1}\n' });
});

test("list filters and pages, as a table and as JSON", async () => {
  const { db, ask, askJson, hathi } = await openDesk();
  await seed(db);
  const page = await askJson<{ jobs: { id: string }[]; next: string | null }>("list", "--limit", "2");
  expect([ids(page), page.next]).toEqual([["4", "3"], "3"]);
  expect(ids(await askJson("list", "--before", "3"))).toEqual(["2", "1"]);
  expect(ids(await askJson("list", "--state", "dead"))).toEqual(["2", "1"]);
  expect(ids(await askJson("list", "--task", "report", "--queue", "slow", "--key", "monthly"))).toEqual(["4"]);
  expect(ids(await askJson("list", "--search", "KABOOM", "--since", "1h"))).toEqual(["2", "1"]);
  expect(ids(await askJson("list", "--since", "2100-01-01"))).toEqual([]);
  const table = await ask("list");
  expect(table.split("\n")[0]).toMatch(/^ID +STATE +TASK +QUEUE +PRIO +TRIES +RUN AT +KEY +LAST ERROR$/);
  expect(table).toMatch(/^ 4 +scheduled +report +slow +0 +0\/25 +in (1 day|23 hours \d+ minutes) +monthly$/m);
  // Nothing is said of when a dead job would run.
  expect(table).toMatch(/^ 1 +dead +email +1 +25\/25 +kaboom$/m);
  expect(table).not.toContain("\x1b[");
  expect(await hathi("list", "--limit", "1")).toMatchObject({ stderr: "More with --before 4\n" });
});

test("a reader that has seen enough ends the program quietly", async () => {
  const { db, project } = await openDesk();
  await db.query(
    "select graphile_worker.add_job('many', json_build_object('text', repeat('x', 100))) from generate_series(1, 1000)",
  );
  const command = `"${process.execPath}" "${mainFile}" list --limit 1000 | head -n 1`;
  const env = { DATABASE_URL: db.url };
  const end = await startCommand("sh", ["-c", command], { cwd: project.folder, env, input: "" }).ended;
  expect(end).toMatchObject({
    code: 0,
    stderr: expect.not.stringContaining("EPIPE"),
    stdout: expect.stringMatching(/^ +ID/),
  });
});

test("show tells everything about a job, why tells what it waits for", async () => {
  const { db, ask, askJson, hathi } = await openDesk();
  await seed(db);
  expect(await askJson("show", "1")).toMatchObject({
    id: "1",
    state: "dead",
    payload: { n: 1 },
    last_error: "kaboom",
  });
  expect(await ask("show", "4")).toMatch(/^key: +monthly$/m);
  expect(await hathi("show", "99")).toMatchObject({
    code: 1,
    stderr:
      "There is no job 99: it was completed (and history is off or has expired), cancelled, removed, or never added. To see which: hathi why 99\n",
  });
  expect(await ask("why", "1")).toContain(
    "Job 1 (email) is dead.\n- Its attempts are used up (25 of 25), so it is not tried again. Last error: kaboom.",
  );
  expect(await askJson("why", "4")).toMatchObject({
    state: "scheduled",
    reasons: [{ kind: "scheduled" }, { kind: "no-worker" }],
  });
  expect(await hathi("why", "99")).toMatchObject({
    code: 1,
    stdout: "There is no job 99: this id has not been given out yet.\n",
  });
  expect(await hathi("why", "x")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("A job id must be a whole number"),
  });
});

test("complete, fail, reschedule and retry change jobs by id and say what was left alone", async () => {
  const { db, ask, askJson, hathi } = await openDesk();
  await seed(db);
  expect(await ask("complete", "1")).toBe("1 job completed.\n");
  expect(await ask("fail", "3", "--reason", "no more")).toBe("1 job failed.\n");
  expect(await db.job(3)).toMatchObject({ attempts: 25, last_error: "no more" });
  expect(await askJson("retry", "2", "3")).toEqual(["2", "3"]);
  expect(await db.job(2)).toMatchObject({ attempts: 0 });
  expect(
    await ask("reschedule", "4", "--priority", "0", "--attempts", "0", "--max-attempts", "9", "--run-at", "2h"),
  ).toBe("1 job rescheduled.\n");
  expect(await db.job(4)).toMatchObject({ priority: 0, max_attempts: 9 });
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-1' where id = 4");
  expect(await hathi("complete", "2", "4", "77")).toMatchObject({
    code: 0,
    stdout: "1 job completed.\n",
    stderr: "2 jobs left alone: running, or not there any more.\n",
  });
  expect(await hathi("complete", "4")).toMatchObject({ code: 1, stdout: "0 jobs completed.\n" });
  expect(await hathi("complete", "four")).toMatchObject({ code: 1, stderr: expect.stringContaining("'four'") });
  expect(await hathi("reschedule", "4")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Say what to change/),
  });
  expect(await hathi("reschedule", "4", "--now", "--run-at", "1h")).toMatchObject({ code: 1 });
  expect(await hathi("retry")).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Say which jobs/) });
  expect(await hathi("retry", "1", "--task", "email")).toMatchObject({
    code: 1,
    stderr: "Give either ids or a filter, not both.\n",
  });
});

test("an action over a filter shows what it would touch and needs a yes", async () => {
  const { db, ask, askJson, hathi } = await openDesk();
  await seed(db);
  const refused = await hathi("retry", "--task", "email", "--state", "dead");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("kaboom");
  expect(refused.stderr).toContain("Retry 2 jobs? There is no terminal to ask: repeat with --yes.");
  expect(await db.job(1)).toMatchObject({ attempts: 25 });
  expect(await ask("retry", "--task", "email", "--state", "dead", "--yes")).toBe("2 jobs set to run again.\n");
  expect(await db.job(1)).toMatchObject({ attempts: 0 });
  expect(await askJson("fail", "--search", "monthly", "-y")).toEqual(["4"]);
  expect(await askJson("remove", "--task", "email", "--yes")).toHaveLength(3);
  expect(await hathi("complete", "--task", "nobody")).toMatchObject({ code: 0, stderr: "No job matches.\n" });
  expect(await askJson("retry", "--task", "nobody")).toEqual([]);
});

test("bulk work over thousands of jobs reaches every one of them", async () => {
  const { db, askJson } = await openDesk();
  await db.query("select graphile_worker.add_job('many') from generate_series(1, 2500)");
  await db.query("update graphile_worker._private_jobs set attempts = max_attempts");
  expect(await askJson<string[]>("retry", "--state", "dead", "--yes")).toHaveLength(2500);
  expect(await db.query("select from graphile_worker._private_jobs where attempts > 0")).toEqual([]);
});

test("remove takes keys", async () => {
  const { db, ask, hathi } = await openDesk();
  await seed(db);
  expect(await ask("remove", "monthly")).toBe("1 job removed.\n");
  expect(await hathi("remove", "monthly")).toMatchObject({ code: 1, stderr: "No job has the key 'monthly'.\n" });
  expect(await db.job(4)).toBeUndefined();
});

test("stats, queues and workers show the whole picture", async () => {
  const { db, ask, askJson } = await openDesk();
  expect(await ask("stats")).toContain("No job is waiting that could run.");
  await seed(db);
  await db.query("update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-1'");
  expect(await askJson("stats")).toMatchObject({
    isExact: true,
    counts: { waiting: 1, scheduled: 1, running: 0, dead: 2, total: 4 },
    oldestWaiting: { id: "3" },
  });
  const stats = await ask("stats");
  expect(stats).toMatch(/^email +1 +0 +0 +2 +3$/m);
  expect(stats).toMatch(/Oldest job waiting: 3 \(email\), due /);
  expect(await ask("queues")).toMatch(/^slow +0 +1 +in .* pool-1 /m);
  expect(await askJson("queues", "--search", "fast")).toEqual([]);
  expect(await askJson("workers")).toMatchObject([{ id: "pool-1", life: "unknown", queues: 1 }]);
  expect(await ask("workers")).toMatch(/^pool-1 +unknown/m);
});

test("force-unlock frees what a dead worker holds", async () => {
  const { db, ask, hathi } = await openDesk();
  await seed(db);
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-1' where id = 3");
  await db.query("update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-1'");
  expect(await ask("force-unlock", "pool-1", "pool-2")).toBe("Unlocked 1 job and 1 queue.\n");
  expect(await db.job(3)).toMatchObject({ locked_at: null, locked_by: null });
  expect(await hathi("force-unlock")).toMatchObject({
    code: 1,
    stderr: "Something is missing: hathi force-unlock <workers..> (see hathi force-unlock --help)\n",
  });
});

test("cleanup takes either spelling of its tasks and asks before it deletes jobs", async () => {
  const { db, ask, hathi } = await openDesk();
  await seed(db);
  expect(await hathi("cleanup")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Delete 2 permanently failed jobs? There is no terminal"),
  });
  expect(await ask("cleanup", "gc-job-queues", "GC_TASK_IDENTIFIERS")).toBe("Cleaned up.\n");
  expect(await db.jobs()).toHaveLength(4);
  expect(await ask("cleanup", "--yes")).toBe("Cleaned up.\n");
  expect((await db.jobs()).map(({ id }) => id)).toEqual(["3", "4"]);
  expect(await hathi("cleanup", "gc-job-queue")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Did you mean 'gc-job-queues'?"),
  });
});

test("migrate --dry-run prints SQL that psql can run, and changes nothing", async () => {
  const db = await freshDatabase({ migrated: false });
  const { folder: cwd } = await makeProject();
  const hathi = (...args: string[]): Promise<ProgramEnd> => runCommand(args, { cwd, env: { DATABASE_URL: db.url } });
  expect(await hathi("list")).toMatchObject({ code: 1, stderr: expect.stringContaining("Run 'hathi migrate' first") });
  const { stdout: sql } = await hathi("migrate", "--dry-run");
  expect(sql).toContain("create table");
  expect(await db.query("select from pg_namespace where nspname = 'graphile_worker'")).toEqual([]);
  await db.query(sql);
  expect(await hathi("migrate", "--dry-run")).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "Schema 'graphile_worker' is up to date.\n",
  });
  expect(await hathi("migrate", "-s", "second")).toMatchObject({
    code: 0,
    stdout: "Schema 'second' is now up to date.\n",
  });
  expect(await hathi("migrate", "-s", "second", "--json")).toMatchObject({
    stdout: '{"schema":"second","isUpToDate":true}\n',
  });
});

test("migrate shows its steps, and names the transaction that it waits for", async () => {
  const db = await originalSchema("0.18");
  const { folder: cwd } = await makeProject();
  const application = await testPool(db.url, 1, { application_name: "shop" }).connect();
  onTestFinished(() => application.release(true));
  await application.query("begin; select graphile_worker.add_job('later')");
  const { rows } = await application.query<{ pid: number }>("select pg_backend_pid() as pid");

  const program = startProgram(["migrate"], { cwd, env: { DATABASE_URL: db.url } });
  await program.says(/^Building index _hathi_jobs_by_task; /m);
  const [line] = await program.says(/^Index _hathi_jobs_by_task waits for the end of other transactions: .*/m);
  expect(line).toMatch(
    new RegExp(`process ${rows[0]!.pid} \\(application 'shop'; .*; last query: select pg_backend_pid`),
  );
  await application.query("commit");
  const end = await program.ended;
  expect(end).toMatchObject({ code: 0, stdout: "Schema 'graphile_worker' is now up to date.\n" });
  expect(end.stderr).toMatch(/^Migration 000002-sql-api is done, \d+ to go\.$/m);
  expect(end.stderr).toMatch(/^Migration \d+-[\w-]+ is done, 0 to go\.$/m);
});

test("migrate offers the exact command for a schema that is too old", async () => {
  const schema = "it's old";
  const db = await freshDatabase({ migrated: false, schema });
  const { folder: cwd } = await makeProject();
  await (await loadOriginal("0.13")).runMigrations({ connectionString: db.url, schema });
  const url = new URL(db.url);
  url.password = "";
  const end = await runProgram(["migrate", "-s", schema, "-c", db.url], { cwd });
  expect(end.code).toBe(1);
  expect(end.stderr).toContain(
    `: npx graphile-worker@0.16.6 --schema-only --schema 'it'\\''s old' --connection '${url.href}'\n`,
  );
  expect(end.stderr).toContain("The schema is at revision 10 (Graphile Worker 0.13)");
  const given = await runProgram(["migrate", "-s", schema], { cwd, env: { DATABASE_URL: db.url } });
  expect(given.stderr).toMatch(
    /^The schema is .* try again: npx graphile-worker@0\.16\.6 --schema-only --schema 'it'\\''s old'\n$/,
  );
});

test("cron checks a crontab, shows the next runs, and lists what the database knows", async () => {
  const { db, ask, askJson, hathi, project } = await openDesk({
    crontab: "0 4 * * * email\n30 12 * * 1 report ?id=weekly\n",
  });
  expect(await ask("cron", "check", "crontab")).toBe("crontab is fine: 2 entries.\n");
  await project.write("broken", "0 25 * * * email\n");
  expect(await hathi("cron", "check", "broken")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^broken:1:3: /),
  });
  expect(await hathi("cron", "check", "nowhere")).toMatchObject({ code: 1, stderr: "There is no file 'nowhere'.\n" });
  const runs = await askJson<{ at: string; identifier: string }[]>("cron", "next", "-n", "2");
  expect(runs.map(({ identifier }) => identifier).sort()).toEqual(["email", "email", "weekly", "weekly"]);
  expect(runs.filter(({ identifier }) => identifier === "email").every(({ at }) => at.endsWith("T04:00:00.000Z"))).toBe(
    true,
  );
  expect(await ask("cron", "next")).toMatch(/^AT +LOCAL TIME +ENTRY +TASK$/m);
  await project.write("hathi.config.mjs", 'export default { worker: { timeZone: "Asia/Tokyo" } };\n');
  for (const file of [[], ["crontab"]]) {
    const [run] = await askJson<{ at: string; timeZone: string; localTime: string }[]>("cron", "next", ...file);
    expect(run).toMatchObject({ timeZone: "Asia/Tokyo", localTime: expect.stringMatching(/\+09:00$/) });
  }
  await db.query("insert into graphile_worker._private_known_crontabs values ('email', now(), now())");
  expect(await askJson("cron", "list")).toMatchObject([{ identifier: "email" }]);
  expect(await hathi("cron", "dance")).toMatchObject({ code: 1 });
});

test("doctor passes a healthy database and fails one that lacks an index", async () => {
  const { db, ask, hathi } = await openDesk();
  const report = await ask("doctor");
  for (const name of [
    "server",
    "schema",
    "clock",
    "indexes",
    "notifications",
    "prepared statements",
    "bloat",
    "oldest transaction",
  ]) {
    expect(report).toMatch(new RegExp(`^(ok|warning) +${name}`, "m"));
  }
  await db.query("drop index graphile_worker._hathi_jobs_by_task");
  expect(await hathi("doctor")).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^problem +indexes +Missing or invalid: _hathi_jobs_by_task/m),
  });
});

test("add warns of a task that no live worker has", async () => {
  const { db, hathi } = await openDesk();
  await db.query("select graphile_worker.worker_heartbeat('worker-1', '{\"tasks\":[\"email\"]}')");
  expect(await hathi("add", "email")).toMatchObject({ code: 0, stderr: "" });
  const { code, stdout, stderr } = await hathi("add", "emial", "--json");
  expect(stderr).toMatch(/^Warning: The only live worker does not have a task 'emial'\..*\n$/);
  expect(JSON.parse(stdout)).toMatchObject({ task_identifier: "emial" });
  expect(code).toBe(0);
});
