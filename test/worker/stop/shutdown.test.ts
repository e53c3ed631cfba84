import { expect, test } from "vitest";
import type { RunnerOptions } from "../../../src/runner/runner-options.ts";
import type { Task } from "../../../src/task.ts";
import { freshDatabase, testPool } from "../../support/database.ts";
import { startProxy } from "../../support/proxy.ts";
import { until } from "../../support/wait.ts";
import { heldTask, never, startPool, startWorker } from "../kit.ts";

test("a graceful stop waits for running jobs, starts no further ones, and then everything is closed", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, nth } = await startWorker(db, { t: held.task });
  await runner.addJob("t", {});
  await held.begun(1);
  let isFinished = false;
  void runner.promise.then(() => {
    isFinished = true;
  });
  const stopped = runner.stop();
  await nth("worker:release");
  await runner.addJob("t", {});
  expect(isFinished).toBe(false);
  held.release(0);
  await stopped;
  await runner.promise;
  expect(isFinished).toBe(true);
  expect(held.started).toHaveLength(1);
  expect(await db.jobs()).toMatchObject([{ attempts: 0, locked_by: null }]);
  await until(
    async () =>
      (await db.query("select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"))
        .length === 0,
    { what: "no connection of the worker is left" },
  );
});

test("a second stop is refused", async () => {
  const db = await freshDatabase();
  const { runner } = await startWorker(db, { t: () => undefined });
  const first = runner.stop();
  await expect(runner.stop()).rejects.toThrow("Runner is already stopped");
  await first;
  await expect(runner.stop()).rejects.toThrow("Runner is already stopped");
  await runner.kill();
});

test("a runner ends with its block when it is declared with `await using`", async () => {
  const db = await freshDatabase();
  const { runner, names } = await startWorker(db, { t: () => undefined });
  await runner[Symbol.asyncDispose]();
  expect(names()).toContain("pool:release");
  await runner[Symbol.asyncDispose]();
});

test("jobs that were claimed ahead are returned with their attempts restored", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  // Before the start: a claim that saw the queue alone would start its first job, and what waits behind a job that runs is not held.
  await db.query(
    "select graphile_worker.add_job('t', queue_name => case when n > 6 then 'q' end) from generate_series(1, 10) as n",
  );
  const { pool } = startPool(
    db,
    { t: held.task },
    { concurrency: 2, preset: { worker: { localQueue: { size: 10 } } } },
  );
  await held.begun(2);
  await until(async () => (await db.jobs()).every(({ locked_by }) => locked_by === pool.id), {
    what: "all are claimed",
  });
  const ended = pool.gracefulShutdown();
  await until(async () => (await db.jobs()).filter(({ locked_by }) => locked_by !== null).length === 2);
  held.releaseAll();
  await ended;
  const left = await db.jobs();
  expect(left).toHaveLength(8);
  expect(left.every(({ attempts, locked_by, locked_at }) => attempts === 0 && !locked_by && !locked_at)).toBe(true);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("a claim that comes back after the stop began is returned", async () => {
  const db = await freshDatabase();
  const { pool } = startPool(db, { t: () => undefined }, { concurrency: 5 });
  for (let n = 0; n < 10; n++) await db.query("select graphile_worker.add_job('t') from generate_series(1, 20)");
  await pool.gracefulShutdown();
  expect((await db.jobs()).every(({ locked_by, attempts }) => locked_by === null && attempts === 0)).toBe(true);
});

test("by default a graceful stop waits as long as the job takes, abort signal or not", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { pool } = startPool(db, { t: held.task }, { gracefulShutdownAbortTimeout: 1 });
  await db.query("select graphile_worker.add_job('t')");
  await held.begun(1);
  const ended = pool.gracefulShutdown();
  await until(() => pool.abortSignal.aborted);
  expect(await db.jobs()).toMatchObject([{ locked_by: pool.id }]);
  held.release(0);
  await ended;
  expect(await db.jobs()).toEqual([]);
});

test("with shutdownGracePeriod a job still running is returned, not failed: attempt restored, run_at moved", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, of } = await startWorker(
    db,
    { t: held.task },
    { shutdownGracePeriod: 50, interruptedJobRetryDelay: 120_000, concurrency: 2 },
  );
  await runner.addJob("t", {}, { queueName: "q" });
  await held.begun(1);
  const before = Date.now();
  await runner.stop();
  const [job] = await db.jobs();
  expect(job).toMatchObject({ attempts: 0, locked_by: null, last_error: expect.stringContaining("interruption") });
  expect(job!.run_at.getTime()).toBeGreaterThan(before + 110_000);
  expect(of("job:interrupted")).toMatchObject([{ job: { id: job!.id }, reason: expect.any(String) }]);
  expect(of("job:error")).toEqual([]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  // What the job reports afterwards changes nothing.
  held.release(0);
  await until(() => of("job:complete").length === 0 && of("job:lost").length === 0);
  expect(await db.job(job!.id)).toMatchObject({ attempts: 0, locked_by: null });
});

test("interrupted jobs rest for 30 seconds unless something else is set", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner } = await startWorker(db, { t: held.task }, { shutdownGracePeriod: 0 });
  await runner.addJob("t", {});
  await held.begun(1);
  await runner.stop();
  const [{ rest }] = (await db.query<{ rest: number }>(
    "select extract(epoch from run_at - now())::float8 as rest from graphile_worker._private_jobs",
  )) as [{ rest: number }];
  expect(rest).toBeLessThanOrEqual(30);
  expect(rest).toBeGreaterThan(10);
});

test("a job that ends within the grace period is settled as usual", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, of, nth } = await startWorker(db, { t: held.task }, { shutdownGracePeriod: 60_000 });
  await runner.addJob("t", {});
  await held.begun(1);
  const stopped = runner.stop();
  await nth("worker:release");
  held.release(0);
  await stopped;
  expect(await db.jobs()).toEqual([]);
  expect(of("job:interrupted")).toEqual([]);
});

test("a forceful shutdown fails running jobs with its message and unlocks them", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { pool } = startPool(db, { t: held.task }, { concurrency: 2 });
  await db.query("select graphile_worker.add_job('t', queue_name => 'q'), graphile_worker.add_job('t')");
  await held.begun(2);
  const { forceFailedJobs } = await pool.forcefulShutdown("out of the building");
  expect(forceFailedJobs.map(({ id }) => id).toSorted()).toEqual(["1", "2"]);
  const left = await db.jobs();
  expect(left).toMatchObject([
    { attempts: 1, last_error: "out of the building", locked_by: null },
    { attempts: 1, last_error: "out of the building", locked_by: null },
  ]);
  expect(left.every(({ run_at }) => run_at.getTime() > Date.now())).toBe(true);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  await expect(pool.promise).rejects.toThrow(/1 \(t\)/);
  expect(pool._forcefulShuttingDown).toBe(true);
});

test("a forceful shutdown in the middle of a claim leaves nothing locked", async () => {
  const db = await freshDatabase();
  for (let round = 0; round < 5; round++) {
    await db.query("select graphile_worker.add_job('t') from generate_series(1, 50)");
    const { pool } = startPool(db, { t: () => undefined }, { concurrency: 5 });
    await pool.forcefulShutdown("now");
    expect((await db.jobs()).filter(({ locked_by }) => locked_by !== null)).toEqual([]);
  }
});

test("kill() kills: it does not wait for a job, not even for one that holds a connection", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner } = await startWorker(db, {
    t: (payload, helpers) => helpers.withPgClient(() => held.task(payload, helpers)),
  });
  await runner.addJob("t", {});
  await held.begun(1);
  await runner.kill("enough");
  expect(await db.jobs()).toMatchObject([{ attempts: 1, last_error: "enough", locked_by: null }]);
  await expect(runner.promise).rejects.toThrow("enough");
});

test("kill() ends a stop that waits", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, nth } = await startWorker(db, { t: held.task });
  await runner.addJob("t", {});
  await held.begun(1);
  const stopped = runner.stop().then(
    () => "stopped",
    (error: Error) => error.message,
  );
  await nth("worker:release");
  await runner.kill();
  expect(await stopped).toContain("forcefulShutdown");
  expect(await db.jobs()).toMatchObject([{ locked_by: null, attempts: 1 }]);
});

test("a forceful shutdown writes how jobs ended, and keeps no connection, though only the one that listens is not theirs", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, 2);
  pgPool.on("connect", (client) => client.on("error", () => undefined));
  const held = heldTask();
  const { runner, nth } = await startWorker(
    db,
    { t: (payload, helpers) => helpers.withPgClient(() => held.task(payload, helpers)) },
    { pgPool, concurrency: 2 },
  );
  await nth("pool:listen:success");
  await runner.addJob("t", {});
  await held.begun(1);
  await db.query("select graphile_worker.add_job('t')");
  await until(() => pgPool.waitingCount > 0, { what: "a claim waits for a connection" });
  await runner.kill();
  expect(await db.jobs()).toMatchObject([
    { locked_by: null, attempts: 1, last_error: expect.stringContaining("runner.kill()") },
    { locked_by: null, attempts: 0 },
  ]);
  held.releaseAll();
  // In this same turn: nobody who waits gets a connection of a pool that ends, so nobody may keep one until then.
  await pgPool.end();
});

test.each([1, 2])("a grace period ends in time though jobs hold every connection (of %i)", async (max) => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, max);
  const held = heldTask();
  const untilToldToStop: Task = (payload, helpers) =>
    helpers.withPgClient(() => Promise.race([held.task(payload, helpers), helpers.abortPromise])) as Promise<void>;
  const { runner } = await startWorker(
    db,
    { t: untilToldToStop },
    {
      pgPool,
      concurrency: max + 1,
      pollInterval: 100,
      useNotifications: false,
      shutdownGracePeriod: 100,
      gracefulShutdownAbortTimeout: never,
    },
  );
  await db.query("select graphile_worker.add_job('t') from generate_series(1, $1::int)", [max]);
  await held.begun(max);
  await until(() => pgPool.waitingCount > 1, { what: "a claim waits for a connection, and the search for cancels" });
  await runner.stop();
  expect(await db.jobs()).toMatchObject(Array.from({ length: max }, () => ({ locked_by: null, attempts: 0 })));
});

/** A worker whose only connection is held by a job, while a claim waits for it. */
async function startWithoutConnections(options: RunnerOptions = {}) {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, 1);
  const held = heldTask();
  const started = await startWorker(
    db,
    { t: (payload, helpers) => helpers.withPgClient(() => held.task(payload, helpers)) },
    { pgPool, concurrency: 2, pollInterval: 100, ...options },
  );
  await db.query("select graphile_worker.add_job('t')");
  await held.begun(1);
  await db.query("select graphile_worker.add_job('t')");
  await until(() => pgPool.waitingCount > 1, { what: "a claim waits for a connection, and the search for cancels" });
  return { ...started, db, held };
}

test("a claim that waits for a connection when the stop begins is not made", async () => {
  const { db, runner, held } = await startWithoutConnections();
  const row = "select id, xmin from graphile_worker._private_jobs where id = 2";
  const before = await db.query(row);
  const stopped = runner.stop();
  held.releaseAll();
  await stopped;
  expect(await db.jobs()).toHaveLength(1);
  expect(await db.query(row)).toEqual(before);
});

test("a graceful stop gives up after its grace period if a job never lets go of the only connection, and says so", async () => {
  const { db, runner, lines, held } = await startWithoutConnections({ shutdownGracePeriod: 100 });
  const reason = "jobs hold every connection of the pool";
  await expect(runner.stop()).rejects.toThrow(reason);
  await expect(runner.promise).rejects.toThrow(reason);
  expect(lines.filter(({ message }) => message.includes(reason))).toHaveLength(1);
  expect(await db.jobs()).toMatchObject([{ locked_by: expect.any(String) }, { locked_by: null, attempts: 0 }]);
  held.releaseAll();
});

test("kill() ends a stop that waits for a job which never lets go of the only connection", async () => {
  const { runner, held } = await startWithoutConnections();
  const stopped = expect(runner.stop()).rejects.toThrow("forcefulShutdown");
  await runner.kill("enough");
  await stopped;
  await expect(runner.promise).rejects.toThrow("enough");
  held.releaseAll();
});

test("a forceful shutdown returns the jobs of a claim whose response was lost", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  const lost = proxy.cutAfter("claim_jobs");
  const { runner } = await startWorker(db, { t: () => undefined }, { connectionString: proxy.url });
  await lost;
  await runner.kill();
  await runner.promise;
  expect((await db.jobs()).filter(({ locked_by }) => locked_by !== null)).toEqual([]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("a pool can be awaited, and its promise settles when it has stopped", async () => {
  const db = await freshDatabase();
  const { pool } = startPool(db, { t: () => undefined });
  let isFinished = false;
  const awaited = (async () => {
    await pool;
    isFinished = true;
  })();
  expect(pool.worker?.workerPool).toBe(pool);
  expect(pool.id).toMatch(/^pool-[0-9a-f]{18}$/);
  expect(isFinished).toBe(false);
  await pool.gracefulShutdown();
  await awaited;
  expect(await pool.then(() => "then")).toBe("then");
  expect(await pool.catch(() => "caught")).toBeUndefined();
  await pool.finally(() => undefined);
  expect(pool._active).toBe(false);
});

test("release() is the deprecated name of a graceful shutdown", async () => {
  const db = await freshDatabase();
  const { pool, lines, names } = startPool(db, { t: () => undefined }, { concurrency: 2 });
  expect(pool.worker).toBeNull();
  await pool.release();
  expect(names()).toContain("pool:release");
  expect(lines.some(({ level, message }) => level === "error" && message.includes("gracefulShutdown"))).toBe(true);
});

test("a worker that is released on its own takes the pool with it", async () => {
  const db = await freshDatabase();
  const { pool, names, lines } = startPool(db, { t: () => undefined }, { concurrency: 2 });
  await pool._workers[0]!.release();
  await pool;
  expect(names().filter((name) => name === "worker:stop")).toHaveLength(2);
  expect(lines.some(({ message }) => message.includes("exited unexpectedly"))).toBe(true);
});

test("nudge looks for work now, and tells whether the worker was free", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { pool, nth } = startPool(db, { t: held.task }, { useNotifications: false });
  await nth("worker:getJob:empty");
  await db.query("select graphile_worker.add_job('t')");
  expect(pool.worker!.nudge()).toBe(true);
  const job = await held.begun(1);
  expect(pool.worker!.nudge()).toBe(false);
  expect(pool.worker!.getActiveJob()).toMatchObject({ id: job.id });
  held.release(0);
  await nth("job:complete");
  expect(pool.worker!.getActiveJob()).toBeNull();
});
