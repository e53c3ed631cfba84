import { expect, test } from "vitest";
import { JobCancelledError, JobLostError, ShutdownAbortError, TimeoutError } from "../../src/index.ts";
import type { TaskHelpers } from "../../src/task.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startPool, startWorker } from "../worker/kit.ts";
import { obedientTask, utilsOf } from "./kit.ts";

test("each job has a signal of its own, whose reason says why it fired", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, started, begun } = obedientTask();
  const { pool, ...worker } = startPool(
    db,
    { t: task, short: task },
    { concurrency: 4, gracefulShutdownAbortTimeout: 20, taskOptions: { short: { timeout: "50ms", abortGrace: "1h" } } },
  );
  const cancelled = await utils.addJob("t", {});
  const late = await utils.addJob("short", {});
  const last = await utils.addJob("t", {});
  await begun(3);
  await utils.cancelJobs([cancelled.id]);
  await worker.completed(2);
  const signalOf = (id: string): AbortSignal => started.find(({ job }) => job.id === id)!.abortSignal;
  expect(signalOf(cancelled.id).reason).toBeInstanceOf(JobCancelledError);
  expect(signalOf(late.id).reason).toBeInstanceOf(TimeoutError);
  expect(signalOf(last.id).aborted).toBe(false);
  await pool.gracefulShutdown("time to go");
  expect(signalOf(last.id).reason).toBeInstanceOf(ShutdownAbortError);
});

test("the signal of a job whose lock was removed fires at the next poll; jobs that are still ours, or completed by their transaction, go on", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, started, begun } = obedientTask();
  const completes = async (payload: unknown, helpers: TaskHelpers): Promise<void> => {
    await helpers.withPgClient(async (client) => {
      await client.query("begin");
      await helpers.completeIn(client);
      await client.query("commit");
    });
    await task(payload, helpers);
  };
  const worker = await startWorker(db, { t: task, completes }, { pollInterval: 50, concurrency: 3 });
  const completed = await utils.addJob("completes", {});
  const kept = await utils.addJob("t", {});
  const lost = await utils.addJob("t", {});
  await begun(3);
  expect(await db.job(completed.id)).toBeUndefined();
  // Removed as by hand or the four-hour rule; nobody starts it before the test has looked.
  await db.query(
    `update graphile_worker._private_jobs
     set locked_by = null, locked_at = null, run_at = now() + interval '1 hour' where id = $1`,
    [lost.id],
  );
  expect((await worker.nth("job:lost")).job.id).toBe(lost.id);

  const signalOf = (id: string): AbortSignal => started.find(({ job }) => job.id === id)!.abortSignal;
  expect(signalOf(lost.id).reason).toBeInstanceOf(JobLostError);
  expect(signalOf(kept.id).aborted).toBe(false);
  expect(signalOf(completed.id).aborted).toBe(false);
  expect(await db.job(lost.id)).toMatchObject({ attempts: 1, last_error: null, locked_at: null });
  expect(await db.job(kept.id)).toMatchObject({ locked_by: worker.pool().id });
});

test("a forced unlock of a living worker fires the signals of its jobs, which run elsewhere then", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, started, begun } = obedientTask();
  const worker = await startWorker(db, { t: task }, { pollInterval: 50, concurrency: 2 });
  const ids = (await utils.addJobs([1, 2].map(() => ({ identifier: "t", payload: {} })))).map(({ id }) => id);
  await begun(2);
  await utils.pause({ worker: worker.pool().id });
  await worker.nth("pool:pause");
  const elsewhere: string[] = [];
  await startWorker(db, { t: (_payload, { job }) => void elsewhere.push(job.id) }, { pollInterval: 50 });
  await utils.forceUnlockWorkers([worker.pool().id]);
  await worker.nth("job:lost", 2);
  for (const { abortSignal } of started) expect(abortSignal.reason).toBeInstanceOf(JobLostError);
  await until(async () => (await db.jobs()).length === 0, { what: "both ran elsewhere" });
  expect(elsewhere.toSorted()).toEqual(ids.toSorted());
});
