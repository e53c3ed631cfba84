import { EventEmitter, once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { poolDatabase } from "../../../src/db/database.ts";
import { lockNotAvailable } from "../../../src/db/sqlstate.ts";
import { resetLocks } from "../../../src/db/statements/locks.ts";
import { makeEmit } from "../../../src/emit.ts";
import { codeOf } from "../../../src/errors.ts";
import type { Job } from "../../../src/job.ts";
import { runOnce } from "../../../src/runner/run.ts";
import { runTaskListOnce } from "../../../src/runner/run-task-list.ts";
import type { TaskList } from "../../../src/task.ts";
import { sleep } from "../../../src/util/sleep.ts";
import { LockKeeper } from "../../../src/worker/settle/lock-keeper.ts";
import type { WorkerPool } from "../../../src/worker.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";
import { until } from "../../support/wait.ts";
import { heldTask, startWorker } from "../kit.ts";

/** One job locked long ago, one not so long ago, each in a queue of its own. */
async function addLocked(db: TestDatabase): Promise<void> {
  await db.query(`
    select graphile_worker.add_job('t', queue_name => 'old', run_at => now() - interval '1 day'),
      graphile_worker.add_job('t', queue_name => 'young')`);
  for (const [name, age] of [
    ["old", "4 hours 1 minute"],
    ["young", "3 hours 59 minutes"],
  ]) {
    await db.query(
      `with queue as (
        update graphile_worker._private_job_queues set locked_at = now() - $2::interval, locked_by = 'pool-dead'
        where queue_name = $1 returning id
      )
      update graphile_worker._private_jobs set locked_at = now() - $2::interval, locked_by = 'pool-dead', attempts = 1
      where job_queue_id = (select id from queue)`,
      [name, age],
    );
  }
}

test("locks that are four hours old are freed, with events; younger ones are left", async () => {
  const db = await freshDatabase();
  await addLocked(db);
  const { nth, pool, runner } = await startWorker(
    db,
    { other: () => undefined },
    { minResetLockedInterval: 1, maxResetLockedInterval: 5 },
  );
  expect((await nth("resetLocked:started")).workerPool).toBe(pool());
  const { workerPool, delay } = await nth("resetLocked:success");
  expect(workerPool).toBe(pool());
  expect(delay).toBeGreaterThanOrEqual(1);
  expect(delay).toBeLessThanOrEqual(5);
  await nth("resetLocked:success", 3);
  await runner.stop();
  const [old, young] = await db.jobs();
  expect(old).toMatchObject({ locked_by: null, locked_at: null, attempts: 1 });
  expect(old!.run_at.getTime()).toBeGreaterThan(Date.now() - 60_000);
  expect(young).toMatchObject({ locked_by: "pool-dead" });
  expect(
    await db.query("select queue_name from graphile_worker._private_job_queues where locked_at is not null"),
  ).toEqual([{ queue_name: "young" }]);
});

test("a sweep that fails is said, and tried again", async () => {
  const db = await freshDatabase();
  const { nth, runner } = await startWorker(
    db,
    { t: () => undefined },
    { minResetLockedInterval: 1, maxResetLockedInterval: 5 },
  );
  await nth("resetLocked:success");
  await db.query("alter table graphile_worker._private_job_queues rename to away");
  const { error, delay } = await nth("resetLocked:failure");
  expect(error).toBeInstanceOf(Error);
  expect(delay).toBeGreaterThanOrEqual(1);
  await db.query("alter table graphile_worker.away rename to _private_job_queues");
  const before = Date.now();
  await nth("resetLocked:started", 2);
  expect(Date.now()).toBeGreaterThanOrEqual(before);
  await runner.stop();
});

test("a stale lock that an application holds is left for the next sweep, and the others are freed", async () => {
  const db = await freshDatabase();
  await addLocked(db);
  await db.query("update graphile_worker._private_jobs set locked_at = now() - interval '5 hours'");
  await db.query("update graphile_worker._private_job_queues set locked_at = now() - interval '5 hours'");
  const application = await db.pool.connect();
  await application.query("begin");
  await application.query("select from graphile_worker._private_jobs where id = 1 for update");
  await application.query("select from graphile_worker._private_job_queues where queue_name = 'old' for update");
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  await database.run(resetLocks, { clock: null });
  expect((await db.jobs()).map(({ locked_by }) => locked_by)).toEqual(["pool-dead", null]);
  await application.query("rollback");
  application.release();
  await database.run(resetLocks, { clock: null });
  expect((await db.jobs()).map(({ locked_by }) => locked_by)).toEqual([null, null]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("no sweep starts once stopping has begun, although a job still runs", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  await db.query("select graphile_worker.add_job('t')");
  const { nth, of, runner } = await startWorker(
    db,
    { t: held.task },
    { minResetLockedInterval: 1, maxResetLockedInterval: 2 },
  );
  await held.begun(1);
  await nth("resetLocked:success", 2);
  const stopping = runner.stop();
  // A sweep that is under way may still end; after it, none begins.
  await until(() => of("resetLocked:success").length === of("resetLocked:started").length);
  const sweeps = of("resetLocked:started").length;
  await sleep(300); // what must not happen would happen after 2 ms
  expect(of("resetLocked:started")).toHaveLength(sweeps);
  held.releaseAll();
  await stopping;
});

test("whoever hears of a sweep may stop the sweeping", async () => {
  const db = await freshDatabase();
  const events = new EventEmitter();
  let sweeps = 0;
  const keeper = new LockKeeper({
    database: poolDatabase(db.pool, { schema: db.schema, preparedStatements: true }),
    emit: makeEmit(events, {} as never, () => undefined),
    workerPool: {} as WorkerPool,
    running: () => [],
    useNodeTime: false,
    minResetLockedInterval: 1,
    maxResetLockedInterval: 2,
  });
  events.on("resetLocked:started", () => sweeps++);
  const stopped = new Promise<void>((resolve) => {
    events.on("resetLocked:success", () => void keeper.stop().then(resolve));
  });
  keeper.start();
  await stopped;
  await sleep(100); // as above
  expect(sweeps).toBe(1);
});

test("a sweep has a deadline, so the end of a worker does not wait for whoever has locked the table", async () => {
  const db = await freshDatabase();
  const application = await db.pool.connect();
  await application.query("begin; lock table graphile_worker._private_jobs in access exclusive mode");
  onTestFinished(async () => {
    await application.query("rollback");
    application.release();
  });
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const events = new EventEmitter();
  const keeper = new LockKeeper({
    database,
    emit: makeEmit(events, {} as never, () => undefined),
    workerPool: {} as WorkerPool,
    running: () => [],
    useNodeTime: false,
    minResetLockedInterval: 3_600_000,
    maxResetLockedInterval: 1,
  });
  const failures: Error[] = [];
  events.on("resetLocked:failure", ({ error }) => failures.push(error));
  const started = once(events, "resetLocked:started");
  keeper.start();
  await started;
  await keeper.stop();
  expect(failures.map(codeOf)).toEqual([lockNotAvailable]);
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await until(async () => (await db.query(waiting)).length === 0, { what: "the server has given up, too" });
});

test("runTaskListOnce frees stale locks first, so that their jobs are run", async () => {
  const db = await freshDatabase();
  await addLocked(db);
  const client = await db.pool.connect();
  const ran: string[] = [];
  const { logger } = rememberingLogger();
  await runTaskListOnce({ logger, noHandleSignals: true }, { t: (_payload, { job }) => void ran.push(job.id) }, client);
  client.release();
  expect(ran).toEqual(["1"]);
});

test("locks of jobs that run for long are made young again, those of others are not", async () => {
  const db = await freshDatabase();
  await addLocked(db);
  await db.query(`
    update graphile_worker._private_jobs set locked_by = 'pool-mine' where id = 1;
    update graphile_worker._private_job_queues set locked_by = 'pool-mine' where queue_name = 'old'`);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const running = (await db.jobs()) as Job[];
  const keeper = new LockKeeper({
    database,
    emit: makeEmit(new EventEmitter(), {} as never, () => undefined),
    workerPool: {} as WorkerPool,
    running: () => running.filter(({ locked_by }) => locked_by === "pool-mine"),
    useNodeTime: false,
    minResetLockedInterval: 3_600_000,
    maxResetLockedInterval: 3_600_000,
    refreshIntervalMs: 5,
  });
  keeper.start();
  onTestFinished(() => keeper.stop());
  const isYoung = (row: { locked_at: Date | null } | undefined): boolean =>
    row?.locked_at !== null && row !== undefined && Date.now() - row.locked_at.getTime() < 60_000;
  await until(async () => isYoung(await db.job(1)), { what: "the lock of the running job is young" });
  expect(isYoung(await db.job(2))).toBe(false);
  const [queue] = await db.query<{ locked_at: Date }>(
    "select locked_at from graphile_worker._private_job_queues where queue_name = 'old'",
  );
  expect(isYoung(queue)).toBe(true);
});

test.each(["runOnce", "runTaskListOnce"])("%s frees old locks before it looks for jobs", async (how) => {
  const db = await freshDatabase();
  await addLocked(db);
  const ran: unknown[] = [];
  const { logger } = rememberingLogger();
  const taskList: TaskList = { t: (_payload, { job }) => void ran.push(job.id) };
  if (how === "runOnce") await runOnce({ connectionString: db.url, logger, noHandleSignals: true, taskList });
  else {
    const client = await db.pool.connect();
    await runTaskListOnce({ logger }, taskList, client).promise;
    client.release();
  }
  const [old, young] = ["1", "2"];
  expect(ran).toEqual([old]);
  expect(await db.jobs()).toMatchObject([{ id: young, locked_by: "pool-dead" }]);
});
