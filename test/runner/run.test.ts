import { EventEmitter } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type Pool } from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { WorkerEvents } from "../../src/events.ts";
import { run, runOnce } from "../../src/runner/run.ts";
import { runTaskList, runTaskListOnce } from "../../src/runner/run-task-list.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import { makeWorkerUtils } from "../../src/runner/worker-utils.ts";
import type { TaskList } from "../../src/task.ts";
import { loadOriginal } from "../compat/original.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { never, recordEvents, startWorker } from "../worker/kit.ts";

const quiet = (): RunnerOptions => ({ logger: rememberingLogger().logger, noHandleSignals: true, pollInterval: never });

test("run() installs the schema, runs jobs, adds jobs, and stops", async () => {
  const db = await freshDatabase({ migrated: false });
  const { runner, completed } = await startWorker(db, { t: () => undefined });
  const job = await runner.addJob("t", { n: 1 }, { priority: 2 });
  expect(job).toMatchObject({ task_identifier: "t", payload: { n: 1 }, priority: 2 });
  const jobs = await runner.addJobs([
    { identifier: "t", payload: 1 },
    { identifier: "t", payload: 2 },
  ]);
  expect(jobs.map(({ payload }) => payload)).toEqual([1, 2]);
  await completed(3);
  await runner.stop();
  await runner.promise;
});

test("options in the preset and options given directly mean the same; what is given directly is stronger", async () => {
  const db = await freshDatabase({ migrated: false, schema: "elsewhere" });
  const { events, of, completed } = recordEvents();
  const runner = await run({
    ...quiet(),
    concurrency: 3,
    taskList: { t: () => undefined },
    preset: {
      worker: {
        connectionString: db.url,
        schema: "elsewhere",
        concurrentJobs: 2,
        maxPoolSize: 4,
        preparedStatements: false,
        events: events as never,
      },
    },
  });
  onTestFinished(() => runner.kill().catch(() => undefined));
  expect(of("worker:create")).toHaveLength(3);
  expect(of("pool:create")[0]!.ctx.workerSchema).toBe("elsewhere");
  await runner.addJob("t", {});
  await completed(1);
});

test("tasks come from the second argument, from taskList, or from a folder", async () => {
  const db = await freshDatabase();
  const ran: string[] = [];
  const folder = await mkdtemp(join(tmpdir(), "hathi-tasks-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "from_file.mjs"), "export default (_payload, { query }) => query('select 1');");
  await db.query(
    "select graphile_worker.add_job('a'), graphile_worker.add_job('b'), graphile_worker.add_job('from_file')",
  );
  const options = { ...quiet(), connectionString: db.url };
  await runOnce({ ...options, taskList: { a: () => void ran.push("a") } });
  await runOnce({ ...options, taskList: { a: () => undefined } }, { b: () => void ran.push("b") });
  await runOnce({ ...options, taskDirectory: folder });
  expect(ran).toEqual(["a", "b"]);
  expect(await db.jobs()).toEqual([]);
});

const pool = {} as Pool;
test.each<[string, RunnerOptions, string]>([
  [
    "a list and a folder of tasks",
    { connectionString: "x", taskList: {}, taskDirectory: "tasks" },
    "Exactly one of either `taskDirectory` or `taskList` should be set",
  ],
  [
    "a pool and a connection string",
    { connectionString: "x", pgPool: pool, taskList: {} },
    "Both `pgPool` and `connectionString` are set, at most one of these options should be provided",
  ],
  [
    "a crontab and parsed items",
    { connectionString: "x", taskList: {}, crontab: "# x", parsedCronItems: [] },
    "`crontab` and `parsedCronItems` must not be set at the same time",
  ],
  ["no slots", { connectionString: "x", taskList: {}, concurrency: 0 }, "concurren"],
  [
    "a sweep without rest",
    { connectionString: "x", taskList: {}, minResetLockedInterval: 0 },
    "minResetLockedInterval",
  ],
  [
    "sweep intervals the wrong way round",
    { connectionString: "x", taskList: {}, minResetLockedInterval: 10, maxResetLockedInterval: 5 },
    "minResetLockedInterval",
  ],
  [
    "a rest longer than the poll",
    {
      connectionString: "x",
      taskList: {},
      pollInterval: 10,
      preset: { worker: { localQueue: { size: 1, refetchDelay: { durationMs: 20 } } } },
    },
    "durationMs",
  ],
])("run() refuses %s", async (_name, options, message) => {
  await expect(run({ ...quiet(), ...options })).rejects.toThrow(message);
});

test("run() refuses to start without a database", async () => {
  const { DATABASE_URL, PGDATABASE } = process.env;
  onTestFinished(() => {
    if (DATABASE_URL !== undefined) process.env.DATABASE_URL = DATABASE_URL;
    if (PGDATABASE !== undefined) process.env.PGDATABASE = PGDATABASE;
  });
  delete process.env.DATABASE_URL;
  delete process.env.PGDATABASE;
  await expect(run({ ...quiet(), taskList: { t: () => undefined } })).rejects.toThrow(
    "You must either specify `pgPool` or `connectionString`, or you must make the `DATABASE_URL` or `PG*` environmental variables available",
  );
});

test("runOnce() without tasks, and on a schema that is not there, fails at once and says why", async () => {
  const db = await freshDatabase();
  const { logger } = rememberingLogger();
  await expect(runOnce({ ...quiet(), connectionString: db.url, taskList: {} })).rejects.toThrow("No runnable tasks");
  const client = await db.pool.connect();
  await expect(
    runTaskListOnce({ logger, noHandleSignals: true, schema: "nowhere" }, { t: () => undefined }, client),
  ).rejects.toThrow("nowhere");
  client.release();
});

test("run() without tasks says once that there is nothing to run, and does not blame the database", async () => {
  const db = await freshDatabase();
  const { runner, lines, nth } = await startWorker(db, {}, { pollInterval: 20 });
  const failed = (): number => lines.filter(({ message }) => message.includes("No runnable tasks")).length;
  // However often it looks for tasks, and whatever else goes well meanwhile.
  await nth("pool:listen:success");
  const before = failed();
  await until(() => failed() >= before + 2);
  await runner.stop();
  expect(lines.map(({ message }) => message).join()).toContain("This worker has no tasks");
  expect(lines.filter(({ level }) => level === "warning" || level === "error")).toHaveLength(1);
});

test("a run() that cannot reach its database rejects", async () => {
  await expect(
    run({ ...quiet(), connectionString: "postgres://127.0.0.1:1/nothing", taskList: { t: () => undefined } }),
  ).rejects.toThrow(/ECONNREFUSED/);
});

test("a user's pool: its handlers, its size and its life stay the user's", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url);
  pgPool.on("connect", (client) => client.on("error", () => undefined));
  const count = (): number[] => [pgPool.listenerCount("error"), pgPool.listenerCount("connect")];
  const before = count();
  const { runner, completed } = await startWorker(db, { t: () => undefined }, { pgPool });
  expect(count()).toEqual(before);
  await runner.addJob("t", {});
  await completed(1);
  await runner.stop();
  expect(count()).toEqual(before);
  expect(pgPool.ended).toBe(false);
  expect((await pgPool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  // A connection that was just being made when the runner stopped is released when it is there.
  await until(() => pgPool.totalCount === pgPool.idleCount);
  const client = await pgPool.connect();
  expect([client.listenerCount("notification"), client.listenerCount("end")]).toEqual([0, expect.any(Number)]);
  client.release();
});

test("a pool without handlers is lent some for as long as the runner runs, and told of it", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url);
  pgPool.removeAllListeners("error");
  const { runner, lines } = await startWorker(db, { t: () => undefined }, { pgPool });
  expect(pgPool.listenerCount("error")).toBe(1);
  expect(lines.some(({ level, message }) => level === "warning" && message.includes("pool.on('error'"))).toBe(true);
  await runner.stop();
  expect(pgPool.listenerCount("error")).toBe(0);
  // The database may be dropped before the last connection is closed.
  pgPool.on("error", () => undefined);
});

test.each([
  { max: 1, concurrency: 1 },
  { max: 1, concurrency: 5 },
  { max: 2, concurrency: 5 },
  { max: 3, concurrency: 10 },
])("a small pool works without a deadlock: %o", async ({ max, concurrency }) => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, max);
  const { runner, completed } = await startWorker(
    db,
    {
      t: async (_payload, { withPgClient, query, addJob }) => {
        await withPgClient((client) => client.query("select pg_sleep(0.001)"));
        await query("select 1");
        await addJob("other", {});
      },
    },
    { pgPool, concurrency, ...(max === 1 && { pollInterval: 50 }) },
  );
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 40)");
  await completed(40);
  await runner.stop();
  expect(await db.jobs()).toHaveLength(40);
});

test("two pools in one process, and two runners on one options object, keep out of each other's way", async () => {
  const db = await freshDatabase();
  const options = { ...quiet(), connectionString: db.url, taskList: { t: () => undefined } };
  const runners = await Promise.all([run(options), run(options)]);
  await runners[0]!.addJob("t", {});
  await until(async () => (await db.jobs()).length === 0);
  await runners[0]!.stop();
  await runners[1]!.addJob("t", {});
  await until(async () => (await db.jobs()).length === 0);
  await runners[1]!.stop();
});

test("runTaskList() does not install the schema; runTaskListOnce() takes a worker's name", async () => {
  const db = await freshDatabase({ migrated: false });
  const { logger } = rememberingLogger();
  const { events, nth } = recordEvents();
  const started = runTaskList({ ...quiet(), events }, { t: () => undefined }, testPool(db.url));
  expect((await nth("worker:getJob:error")).error).toMatchObject({
    code: expect.stringMatching(/^42P01|3F000|42883$/),
  });
  await started.gracefulShutdown();
  const migrated = await freshDatabase();
  const client = await migrated.pool.connect();
  const once = runTaskListOnce({ logger, noHandleSignals: true, workerId: "me" }, { t: () => undefined }, client);
  expect(once.worker?.workerId).toBe("me");
  await once;
  client.release();
});

test("events may be any emitter, and the runner shows it", async () => {
  const db = await freshDatabase();
  const events = new EventEmitter() as unknown as WorkerEvents;
  const { runner } = await startWorker(db, { t: () => undefined }, { events });
  expect(runner.events).toBe(events);
});

test("a breaking migration by somebody else stops the worker with exit code 57", async () => {
  const db = await freshDatabase();
  const before = process.exitCode;
  onTestFinished(() => {
    process.exitCode = before;
  });
  const { runner, nth } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty", 2);
  await db.query(`select pg_notify('worker:migrate', '{"migrationNumber":99,"breaking":false}')`);
  await announceMigration(db, "graphile_worker", 100);
  await runner.promise;
  expect(process.exitCode).toBe(57);
});

/** As the original does: in one transaction with the migration. */
async function announceMigration(db: TestDatabase, schema: string, id: number): Promise<void> {
  await db.pool.query(`
    insert into "${schema}".migrations (id, breaking) values (${id}, true) on conflict do nothing;
    select pg_notify('worker:migrate', '{"migrationNumber":${id},"breaking":true}');`);
}

test("announced migrations that we know, or of another schema of the database, stop no worker", async () => {
  const db = await freshDatabase();
  const { runMigrations } = await loadOriginal("0.18");
  const before = process.exitCode;
  onTestFinished(() => {
    process.exitCode = before;
  });
  const { runner, nth, of } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty", 2);
  const heard = (id: number) =>
    until(() => of("pool:listen:notification").some(({ message }) => message.payload?.includes(`Number":${id},`)));
  // An original installs itself beside ours, with all its breaking migrations from 1 to 19.
  await runMigrations({ connectionString: db.url, schema: "second" });
  await heard(20);
  await announceMigration(db, "second", 99);
  await heard(99);
  await announceMigration(db, "graphile_worker", 16);
  await db.query(`select pg_notify('worker:migrate', '{"migrationNumber":98,"breaking":true}')`);
  await heard(98);

  // The worker asks before it decides; what it runs afterwards shows that it went on.
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 20)");
  await until(async () => (await db.jobs()).length === 0);
  expect(process.exitCode).toBe(before);
  await announceMigration(db, "graphile_worker", 100);
  await runner.promise;
  expect(process.exitCode).toBe(57);
});

test("what stands in a task list and is no function is named and left out", async () => {
  const db = await freshDatabase();
  const { logger, lines } = rememberingLogger();
  const messages = (level: string): string[] =>
    lines.filter((line) => line.level === level).map(({ message }) => message);
  const taskList = { t: () => undefined, limit: 5, off: undefined, none: null } as unknown as TaskList;
  await runOnce({ ...quiet(), logger, connectionString: db.url, taskList });
  expect(messages("warning")).toEqual(["Not a task: 'limit' of the task list is a number, not a function."]);
  await expect(runOnce({ ...quiet(), connectionString: db.url }, "tasks" as never)).rejects.toThrow(
    /^The task list must be an object of functions such as .*, got 'tasks'\.$/,
  );
});

test.each(["x", [1], {}])("forbidden flags that are no list of names are refused: %o", async (forbiddenFlags) => {
  const db = await freshDatabase();
  const options = { ...quiet(), connectionString: db.url, taskList: { t: () => undefined } };
  const sentence = /^'forbiddenFlags' must be an array of names, or a function that gives one, got /;
  await expect(run({ ...options, forbiddenFlags } as never)).rejects.toThrow(sentence);
  await expect(runOnce({ ...options, forbiddenFlags: () => forbiddenFlags } as never)).rejects.toThrow(sentence);
});

test("forbidden flags that cannot be had are not put down to the database", async () => {
  const db = await freshDatabase();
  const { logger, lines } = rememberingLogger();
  const messages = (level: string): string[] =>
    lines.filter((line) => line.level === level).map(({ message }) => message);
  let isBroken = true;
  const forbiddenFlags = (): null => {
    if (isBroken) throw new Error("no flags today");
    return null;
  };
  const { runner, completed } = await startWorker(
    db,
    { t: () => undefined },
    { logger, pollInterval: 10, forbiddenFlags },
  );
  await until(() => messages("error").length > 0);
  expect(messages("error")).toEqual(["Cannot ask for jobs (no flags today); trying again. Running jobs go on."]);
  isBroken = false;
  await runner.addJob("t", {});
  await completed(1);
  expect(messages("info")).toContainEqual(expect.stringMatching(/^Asking for jobs works again after [\d.]+ s\.$/));
  await runner.stop();
});

test.each([
  ["nothing", undefined, /^The options must be an object such as .*, got undefined\.$/],
  [
    "a connection string",
    "postgres://ada:secret@127.0.0.1/x",
    /^The options must be an object such as .*, got string\.$/,
  ],
  ["a client for a pool", { pgPool: new Client(), taskList: {} }, /^'pgPool' must be a Pool of the package 'pg'/],
  ["a list for a crontab", { crontab: ["* * * * * t"] }, /^'crontab' must be the text of a crontab/],
  ["a function for a task list", { taskList: () => undefined }, /^The task list must be an object of functions/],
])("%s for options is answered with one sentence", async (_, given, sentence) => {
  const isAnObject = typeof given === "object";
  const db = isAnObject && !("pgPool" in given) ? await freshDatabase() : undefined;
  const options = isAnObject ? { ...quiet(), taskList: {}, ...(db && { connectionString: db.url }), ...given } : given;
  await expect(run(options as RunnerOptions)).rejects.toThrow(sentence);
  if (!isAnObject) await expect(makeWorkerUtils(given as never)).rejects.toThrow(sentence);
});
