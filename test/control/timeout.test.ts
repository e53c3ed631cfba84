import { expect, test } from "vitest";
import { defineBatchTask, TimeoutError } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { obedientTask, stubbornTask, utilsOf } from "./kit.ts";

test("a job that takes longer than its timeout is told to stop, and fails with a TimeoutError", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task }, { taskOptions: { t: { timeout: "50ms", abortGrace: "1h" } } });
  const { id } = await utils.addJob("t", {});
  const { abortSignal } = await begun(1);
  await worker.completed(1);
  expect(abortSignal.reason).toBeInstanceOf(TimeoutError);
  expect(worker.of("job:timeout").map(({ job }) => job.id)).toEqual([id]);
  expect(worker.of("job:overrun")).toEqual([]);
  expect(await db.job(id)).toMatchObject({
    attempts: 1,
    last_error: expect.stringMatching(/timeout of 50 ms/),
    locked_at: null,
  });
});

test("what a task throws after its timeout is the cause of the TimeoutError; what it returns counts", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const tasks = {
    throws: (_payload: unknown, { abortPromise }: { abortPromise: Promise<never> }) =>
      abortPromise.catch(() => {
        throw new Error("stopped half way");
      }),
    returns: (_payload: unknown, { abortPromise }: { abortPromise: Promise<never> }) =>
      abortPromise.catch(() => undefined),
  };
  const options = { timeout: 50, abortGrace: "1h" };
  const worker = await startWorker(db, tasks, { taskOptions: { throws: options, returns: options }, concurrency: 2 });
  const failing = await utils.addJob("throws", {});
  const done = await utils.addJob("returns", {});
  await worker.completed(2);
  const error = worker.of("job:error")[0]!.error;
  expect(error).toBeInstanceOf(TimeoutError);
  expect((error.cause as Error).message).toBe("stopped half way");
  expect(await db.job(failing.id)).toMatchObject({ attempts: 1 });
  expect(await db.job(done.id)).toBeUndefined();
});

test("a batch task times out as a whole: its signal fires, and all items are tried again", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const seen: unknown[] = [];
  const batch = defineBatchTask<number>({
    identifier: "batch",
    timeout: 50,
    abortGrace: "1h",
    backoff: { type: "fixed", delay: "1h" },
    run: (items, { abortPromise }) => {
      seen.push(items);
      return abortPromise;
    },
  });
  const worker = await startWorker(db, { batch });
  const { id } = await utils.addJob(batch, [1, 2, 3]);
  await worker.completed(1);
  expect(seen).toEqual([[1, 2, 3]]);
  expect(worker.of("job:error")[0]!.error).toBeInstanceOf(TimeoutError);
  const last_error = expect.stringMatching(/timeout of 50 ms/);
  expect(await db.job(id)).toMatchObject({ attempts: 1, payload: [1, 2, 3], last_error, locked_at: null });
});

test("an overrunning job fails, but keeps its slot and its queue until its task returns", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const ran: string[] = [];
  const worker = await startWorker(
    db,
    { stuck: stuck.task, t: (_payload, { job }) => void ran.push(job.id) },
    {
      taskOptions: { stuck: { timeout: 50, abortGrace: 50, backoff: { type: "fixed", delay: "1h" } } },
      concurrency: 2,
    },
  );
  const { id } = await utils.addJob("stuck", {}, { queueName: "q" });
  await worker.nth("job:overrun");
  await worker.completed(1);

  expect(await db.job(id)).toMatchObject({
    attempts: 1,
    locked_at: null,
    last_error: expect.stringMatching(/timeout/),
  });
  const queueLock = async (): Promise<unknown> =>
    (await db.query("select locked_by from graphile_worker._private_job_queues"))[0]!.locked_by;
  expect(await queueLock()).toBe(worker.pool().id);
  const next = await utils.addJob("t", {}, { queueName: "q" });
  const free = await utils.addJob("t", {});
  await until(() => ran.includes(free.id));
  expect(ran).toEqual([free.id]); // the other slot works, the queue waits
  expect(await db.query("select job_id::text, task_identifier from graphile_worker._hathi_job_overruns")).toEqual([
    { job_id: id, task_identifier: "stuck" },
  ]);
  expect(worker.lines.some(({ message }) => /overrun|still running/i.test(message) && message.includes("stuck"))).toBe(
    true,
  );

  stuck.release(0);
  await until(() => ran.includes(next.id));
  expect(await db.query("select from graphile_worker._hathi_job_overruns")).toEqual([]);
  expect(worker.of("job:complete").filter(({ job }) => job.id === id)).toHaveLength(1);
});

test("the same job does not start again in a process where an earlier attempt still runs", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const worker = await startWorker(
    db,
    { stuck: stuck.task },
    {
      taskOptions: { stuck: { timeout: 50, abortGrace: 1, backoff: { type: "fixed", delay: 1 } } },
      concurrency: 3,
      pollInterval: 50,
    },
  );
  const { id } = await utils.addJob("stuck", {});
  await worker.nth("job:overrun");
  // It was claimed again and returned: its attempt is restored and it rests for a while.
  await until(async () => {
    const job = await db.job(id);
    return job?.locked_at === null && job.attempts === 1 && job.run_at.getTime() > Date.now() + 3_000;
  });
  expect(stuck.started).toHaveLength(1);
  // Elsewhere it may be tried.
  const elsewhere: string[] = [];
  await db.query("update graphile_worker._private_jobs set run_at = now()");
  await startWorker(db, { stuck: (_payload, { job }) => void elsewhere.push(job.id) }, { pollInterval: 20 });
  await until(async () => {
    await db.query(
      "update graphile_worker._private_jobs set run_at = now() where run_at > now() and locked_at is null",
    );
    return elsewhere.length > 0;
  });
  expect(elsewhere).toEqual([id]);
  expect(stuck.started).toHaveLength(1);
});

test("a stuck slot is replaced by a new one, up to a limit", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const ran: string[] = [];
  const worker = await startWorker(
    db,
    { stuck: stuck.task, t: (_payload, { job }) => void ran.push(job.id) },
    {
      taskOptions: {
        stuck: { timeout: 30, abortGrace: 1, replaceStuckSlots: 1, backoff: { type: "fixed", delay: "1h" } },
      },
    },
  );
  await utils.addJob("stuck", {});
  await worker.nth("job:overrun");
  const first = await utils.addJob("t", {});
  await until(() => ran.includes(first.id));
  await utils.addJob("stuck", {});
  await worker.nth("job:overrun", 2);
  expect(worker.of("job:overrun").map(({ isReplaced }) => isReplaced)).toEqual([true, false]);
  const second = await utils.addJob("t", {});
  stuck.release(0); // its slot is gone, so this alone gives no room
  await until(async () => (await db.query("select from graphile_worker._hathi_job_overruns")).length === 1);
  expect(ran).not.toContain(second.id);
  stuck.release(1);
  await until(() => ran.includes(second.id));
});

test("a shutdown whose patience ends releases the queue of an overrunning job", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const worker = await startWorker(
    db,
    { stuck: stuck.task },
    {
      taskOptions: { stuck: { timeout: 30, abortGrace: 1, backoff: { type: "fixed", delay: "1h" } } },
      shutdownGracePeriod: 50,
    },
  );
  const { id } = await utils.addJob("stuck", {}, { queueName: "q" });
  await worker.nth("job:overrun");
  await worker.completed(1);
  await worker.runner.stop();
  expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
  expect(await db.job(id)).toMatchObject({ attempts: 1, locked_at: null });
});

test("a cancelled job that overruns is cancelled", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const worker = await startWorker(db, { t: stuck.task }, { taskOptions: { t: { timeout: 3_000, abortGrace: 1 } } });
  const { id } = await utils.addJob("t", {});
  await stuck.begun(1);
  await utils.cancelJobs([id]);
  await worker.nth("job:cancelling");
  await worker.completed(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
  expect(await db.job(id)).toBeUndefined();
});
