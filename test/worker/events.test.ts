import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { WorkerEvents } from "../../src/events.ts";
import { Logger } from "../../src/logger.ts";
import { runOnce } from "../../src/runner/run.ts";
import { freshDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { heldTask, recordEvents, startPool, startWorker } from "./kit.ts";

test("before run() resolves: one pool:create, a worker:create for each slot, one pool:listen:connecting", async () => {
  const db = await freshDatabase();
  const { heard, of, runner, events } = await startWorker(db, { t: () => undefined }, { concurrency: 3 });
  const early = heard.map(({ name }) => name);
  expect(early.filter((name) => name === "pool:create")).toHaveLength(1);
  expect(early.filter((name) => name === "worker:create")).toHaveLength(3);
  expect(early.filter((name) => name === "pool:listen:connecting")).toHaveLength(1);
  expect(early.indexOf("pool:create")).toBeLessThan(early.indexOf("worker:create"));
  expect(early.lastIndexOf("worker:create")).toBeLessThan(early.indexOf("pool:listen:connecting"));
  expect(runner.events).toBe(events);
  const [{ workerPool } = {}] = of("pool:create");
  expect(of("worker:create").every(({ worker }) => worker.workerPool === workerPool)).toBe(true);
  expect(new Set(of("worker:create").map(({ worker }) => worker.workerId)).size).toBe(3);
  expect(of("worker:create")[0]!.tasks).toHaveProperty("t");
  expect(of("pool:listen:connecting")[0]).toMatchObject({ workerPool, attempts: 0 });
});

test("every payload carries the context that plugins know", async () => {
  const db = await freshDatabase();
  const { runner, heard, completed } = await startWorker(db, { t: () => undefined });
  await runner.addJob("t", {});
  await completed(1);
  await runner.stop();
  for (const { name, payload } of heard) {
    expect(payload.ctx, name).toMatchObject({
      workerSchema: "graphile_worker",
      escapedWorkerSchema: '"graphile_worker"',
      maxMigrationNumber: expect.any(Number),
    });
  }
});

test("a job that succeeds: start, success, complete, with worker and job", async () => {
  const db = await freshDatabase();
  const { runner, heard, completed, of } = await startWorker(db, { t: () => undefined });
  const added = await runner.addJob("t", { a: 1 });
  await completed(1);
  const ofJob = heard.filter(({ name }) => name.startsWith("job:"));
  expect(ofJob.map(({ name }) => name)).toEqual(["job:start", "job:success", "job:complete"]);
  const [{ worker, job } = {}] = of("job:start");
  expect(worker?.workerId).toMatch(/^worker-[0-9a-f]{18}$/);
  expect(job).toMatchObject({
    id: added.id,
    task_identifier: "t",
    payload: { a: 1 },
    attempts: 1,
    locked_by: worker?.workerPool.id,
  });
  expect(of("job:complete")[0]).toMatchObject({ error: null, job: { id: added.id } });
});

test("job:complete is said when the database knows, not before", async () => {
  const db = await freshDatabase();
  const recording = recordEvents();
  const rowsAtComplete: Promise<number>[] = [];
  recording.events.on("job:complete", () => rowsAtComplete.push(db.jobs().then((jobs) => jobs.length)));
  const { runner } = await startWorker(db, { t: () => undefined }, { events: recording.events });
  await runner.addJob("t", {});
  await recording.completed(1);
  expect(await Promise.all(rowsAtComplete)).toEqual([0]);
});

test("a job that fails: start, error, complete; on the last attempt job:failed in between", async () => {
  const db = await freshDatabase();
  const { runner, heard, completed, of } = await startWorker(db, {
    t: () => {
      throw new Error("no");
    },
  });
  await runner.addJob("t", {});
  await completed(1);
  await runner.addJob("t", {}, { maxAttempts: 1 });
  await completed(2);
  expect(heard.filter(({ name }) => name.startsWith("job:")).map(({ name }) => name)).toEqual([
    ...["job:start", "job:error", "job:complete"],
    ...["job:start", "job:error", "job:failed", "job:complete"],
  ]);
  expect(of("job:error")[0]).toMatchObject({ error: { message: "no" } });
  expect(of("job:failed")[0]).toMatchObject({ error: { message: "no" }, job: { max_attempts: 1 } });
  expect(of("job:complete").map(({ error }) => error?.message)).toEqual(["no", "no"]);
});

test("a stop is said in the order of the original", async () => {
  const db = await freshDatabase();
  const { runner, names, nth, heard, of } = await startWorker(db, { t: () => undefined }, { concurrency: 2 });
  await nth("worker:getJob:empty");
  await nth("pool:listen:success");
  const before = heard.length;
  await runner.stop("because");
  const after = names().slice(before);
  expect(after.filter((name) => !name.includes("getJob"))).toEqual([
    "stop",
    "pool:gracefulShutdown",
    "worker:release",
    "worker:release",
    ...["worker:stop", "worker:stop", "pool:listen:release"].toSorted(
      (a, b) => after.indexOf(a as never) - after.indexOf(b as never),
    ),
    "pool:gracefulShutdown:complete",
    "pool:release",
  ]);
  const [shutdown] = of("pool:gracefulShutdown");
  expect(shutdown).toMatchObject({ message: "because" });
  expect(shutdown!.pool).toBe(shutdown!.workerPool);
});

test("runOnce says that it processed all available jobs and is now exiting", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t')");
  const { events, names, of } = recordEvents();
  const { logger } = rememberingLogger();
  await runOnce({ connectionString: db.url, events, logger, noHandleSignals: true, taskList: { t: () => undefined } });
  expect(names().filter((name) => !name.includes("getJob"))).toEqual([
    "pool:create",
    "worker:create",
    "job:start",
    "job:success",
    "job:complete",
    "pool:gracefulShutdown",
    "worker:release",
    "worker:stop",
    "pool:gracefulShutdown:complete",
    "pool:release",
  ]);
  expect(of("pool:gracefulShutdown")[0]!.message).toBe(
    "'Run once' mode processed all available jobs and is now exiting",
  );
});

test("notifications are passed on with their message and client", async () => {
  const db = await freshDatabase();
  const { runner, nth } = await startWorker(db, { t: () => undefined });
  await nth("pool:listen:success");
  await nth("worker:getJob:empty", 2);
  await runner.addJob("t", {});
  const { message, client } = await nth("pool:listen:notification");
  expect(message).toMatchObject({ channel: "jobs:insert" });
  expect(JSON.parse(message.payload!)).toMatchObject({ count: 1 });
  expect(client.query).toBeTypeOf("function");
});

test("a lost LISTEN connection is said, and a new one is made", async () => {
  const db = await freshDatabase();
  const { runner, nth, completed } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty", 2);
  await db.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'LISTEN%' and pid <> pg_backend_pid()`);
  const { error, client } = await nth("pool:listen:error");
  expect(error).toBeInstanceOf(Error);
  expect(client).toBe((await nth("pool:listen:success")).client);
  expect((await nth("pool:listen:connecting", 2)).attempts).toBe(1);
  await nth("pool:listen:success", 2);
  await runner.addJob("t", {});
  await completed(1);
});

test("a forceful shutdown in the middle of a graceful one: its events, and what each promise says", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { pool, names, heard } = startPool(db, { t: held.task });
  await db.query("select graphile_worker.add_job('t')");
  await held.begun(1);
  const before = heard.length;
  const graceful = pool.gracefulShutdown("first").then(
    () => "resolved",
    (error: Error) => error.message,
  );
  const { forceFailedJobs } = await pool.forcefulShutdown("second");
  expect(forceFailedJobs).toMatchObject([{ id: held.started[0]!.id }]);
  expect(await graceful).toBe("forcefulShutdown was initiated whilst gracefulShutdown was still executing.");
  await expect(pool.promise).rejects.toThrow(held.started[0]!.id);
  const after = names().slice(before);
  for (const name of [
    "pool:gracefulShutdown",
    "pool:forcefulShutdown",
    "pool:forcefulShutdown:complete",
    "pool:gracefulShutdown:error",
    "pool:release",
    "worker:stop",
  ] as const) {
    expect(
      after.filter((heardName) => heardName === name),
      name,
    ).toHaveLength(1);
  }
  expect(after).not.toContain("pool:gracefulShutdown:complete");
  expect(await db.jobs()).toMatchObject([{ last_error: "second", locked_by: null, attempts: 1 }]);
});

test("a listener that throws is reported in the log and changes nothing", async () => {
  const db = await freshDatabase();
  const events = new EventEmitter();
  events.on("job:start", () => {
    throw new Error("bad listener");
  });
  const { runner, lines } = await startWorker(
    db,
    { t: () => undefined },
    { events: events as unknown as WorkerEvents },
  );
  await runner.addJob("t", {});
  await until(async () => (await db.jobs()).length === 0, { what: "the job is done" });
  expect(lines.some(({ level, message }) => level === "error" && message.includes("bad listener"))).toBe(true);
});

test("what happens to jobs is said in the log", async () => {
  const db = await freshDatabase();
  const { runner, lines, completed } = await startWorker(db, {
    good: () => undefined,
    bad: () => {
      throw new Error("oh no");
    },
  });
  const good = await runner.addJob("good", {});
  const bad = await runner.addJob("bad", {});
  await completed(2);
  const found = (level: string, pattern: RegExp): boolean =>
    lines.some((line) => line.level === level && pattern.test(line.message));
  expect(found("info", new RegExp(`^Completed task ${good.id} \\(good, \\d+\\.\\d\\dms\\) with success$`))).toBe(true);
  expect(
    found("error", new RegExp(`^Failed task ${bad.id} \\(bad, \\d+\\.\\d\\dms, attempt 1 of 25\\) with error 'oh no'`)),
  ).toBe(true);
  expect(found("info", /^Worker connected and looking for jobs\.\.\. \(task names: 'good', 'bad'\)$/)).toBe(true);
});

test("the line that says a worker has started stays short with fifty tasks", async () => {
  const db = await freshDatabase();
  const names = Array.from({ length: 50 }, (_, index) => `some/task-number-${index + 1}`);
  const { lines } = await startWorker(db, Object.fromEntries(names.map((name) => [name, () => undefined])));
  const line = await until(() => lines.find(({ message }) => message.startsWith("Worker connected")), {
    what: "the worker has started",
  });
  expect(line.message).toMatch(/^[^\n]*\(50 task names: 'some\/task-number-1', .* and \d+ more\)$/);
  expect(line.message.length).toBeLessThan(160);
});

test("success is logged when the database knows of it, with the job and its duration but without its payload", async () => {
  const db = await freshDatabase();
  const metas: Record<string, unknown>[] = [];
  const logger = new Logger(() => (_level, message, meta) => {
    if (message.includes("with success")) metas.push(meta);
  });
  const held = heldTask();
  const { runner, nth, completed } = await startWorker(db, { t: held.task }, { logger });
  const { id } = await runner.addJob("t", { password: "secret" });
  await held.begun(1);
  const blocker = await testPool(db.url, 1).connect();
  await blocker.query("begin; lock table graphile_worker._private_jobs in share row exclusive mode");
  held.releaseAll();
  await nth("job:success");
  expect(metas).toEqual([]);
  await blocker.query("rollback");
  blocker.release();
  await completed(1);
  expect(metas).toMatchObject([{ job: { id, attempts: 1 }, duration: expect.any(Number), success: true }]);
  expect(JSON.stringify(metas)).not.toContain("secret");
});

test("the line about the start stays on one line with fifty tasks", async () => {
  const db = await freshDatabase();
  const names = Array.from({ length: 50 }, (_, index) => `some-task-number-${index}`);
  const { lines, nth } = await startWorker(db, Object.fromEntries(names.map((name) => [name, () => undefined])));
  await nth("pool:listen:success");
  const line = lines.find(({ message }) => message.startsWith("Worker connected"))!.message;
  expect(line).toMatch(/^[^\n]+\(50 task names: 'some-task-number-0', 'some-task-number-1'.* and \d+ more\)$/);
  expect(line.length).toBeLessThan(140);
});

test("a logger that throws changes nothing", async () => {
  const db = await freshDatabase();
  const logger = new Logger(() => () => {
    throw new Error("bad logger");
  });
  const { runner, completed } = await startWorker(
    db,
    {
      good: () => undefined,
      bad: () => {
        throw new Error("no");
      },
    },
    { logger },
  );
  await runner.addJob("good", {});
  await runner.addJob("bad", {});
  await completed(2);
  await runner.stop();
});
