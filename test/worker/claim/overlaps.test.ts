import { describe, expect, test } from "vitest";
import { type Job, JobLostError } from "../../../src/index.ts";
import { Overlaps } from "../../../src/worker/claim/overlaps.ts";
import { stubbornTask, utilsOf } from "../../control/kit.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { startWorker } from "../kit.ts";

const job = (id: number, queue: number | null = null): Job => ({ id: String(id), job_queue_id: queue }) as Job;

describe("of a claim that brings what the pool has already", () => {
  test("only new jobs and new queues are clear", () => {
    const ours: Job[] = [];
    const overlaps = new Overlaps(() => ours);
    expect(overlaps.find([job(9), job(10, 1)])).toBeUndefined();
    ours.push(job(9), job(10, 1));
    expect(overlaps.find([job(11), job(8), job(12, 2)])).toBeUndefined();
    expect(overlaps.find([job(9), job(13, 1), job(14, 3), job(15)])).toEqual({
      clear: [job(14, 3), job(15)],
      again: { jobs: [job(9)], queueIds: [] },
      behind: [job(13, 1)],
    });
  });

  test("a queue is released unless the pool has, or gets, another job in it", () => {
    const ours = [job(1), job(2), job(3, 7)];
    // Jobs 1 and 2 were moved to other queues meanwhile.
    expect(new Overlaps(() => ours).find([job(1, 5), job(2, 6), job(4, 6), job(3, 7)])).toEqual({
      clear: [job(4, 6)],
      again: { jobs: [job(1, 5), job(2, 6), job(3, 7)], queueIds: [5] },
      behind: [],
    });
  });

  test("jobs with higher ids than ever before are new, and what the pool has is not looked at", () => {
    let looks = 0;
    const overlaps = new Overlaps(() => {
      looks++;
      return [];
    });
    for (const id of [2, 9, 10, 99, 100]) overlaps.find([job(id)]);
    expect(looks).toBe(0);
    overlaps.find([job(99)]);
    expect(looks).toBe(1);
  });
});

async function isResting(db: TestDatabase, id: string): Promise<boolean> {
  const row = await db.job(id);
  return row?.locked_at === null && row.run_at.getTime() > Date.now() + 3_000;
}

async function queueLock(db: TestDatabase): Promise<unknown> {
  return (await db.query("select locked_by from graphile_worker._private_job_queues"))[0]!.locked_by;
}

test("a job whose lock was removed by force does not start again beside its first run; it is returned unused, and rests", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const worker = await startWorker(db, { t: stuck.task }, { concurrency: 3, pollInterval: 50 });
  const { id } = await utils.addJob("t", {});
  await stuck.begun(1);
  await utils.forceUnlockWorkers([worker.pool().id]);
  await until(async () => stuck.started.length > 1 || (await isResting(db, id)), { what: "it was claimed again" });
  expect(stuck.started).toHaveLength(1);
  expect(await db.job(id)).toMatchObject({ attempts: 1 });
  await until(() => stuck.started[0]!.abortSignal.reason instanceof JobLostError, { what: "the run is told to stop" });

  stuck.release(0);
  await worker.nth("job:lost");
  await utils.rescheduleJobs([id], { runAt: new Date() });
  await stuck.begun(2);
  stuck.release(1);
  await until(async () => !(await db.job(id)), { what: "it is done" });
});

describe.each([
  { kind: "without limits", taskOptions: {} },
  { kind: "with a rate limit", taskOptions: { t: { rateLimit: { limit: 1_000, period: "1s" } } } },
])("of tasks $kind", ({ taskOptions }) => {
  test("jobs of a named queue wait for a run whose lock was removed, and the queue stays locked for it", async () => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const stuck = stubbornTask();
    const worker = await startWorker(db, { t: stuck.task }, { concurrency: 3, pollInterval: 50, taskOptions });
    const first = await utils.addJob("t", {}, { queueName: "q" });
    await stuck.begun(1);
    await utils.addJob("t", {}, { queueName: "q" });
    await utils.forceUnlockWorkers([worker.pool().id]);
    await until(
      async () =>
        stuck.started.length > 1 ||
        ((await queueLock(db)) === worker.pool().id &&
          (await isResting(db, first.id)) &&
          (await db.jobs()).every(({ locked_at }) => locked_at === null)),
      { what: "the queue was claimed again, and its jobs returned" },
    );
    expect(stuck.started).toHaveLength(1);

    stuck.release(0);
    await stuck.begun(2);
    stuck.release(1);
    await until(async () => (await db.jobs()).length === 1);
    await utils.rescheduleJobs([first.id], { runAt: new Date() });
    await stuck.begun(3);
    stuck.release(2);
    await until(async () => (await db.jobs()).length === 0 && (await queueLock(db)) === null);
    expect(stuck.started.map(({ job: { id } }) => id === first.id)).toEqual([true, false, true]);
  });
});

test("a forced unlock does not let the queue of an overrunning job go on in its process", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const ran: string[] = [];
  const worker = await startWorker(
    db,
    { stuck: stuck.task, t: (_payload, helpers) => void ran.push(helpers.job.id) },
    {
      concurrency: 2,
      pollInterval: 50,
      taskOptions: { stuck: { timeout: 30, abortGrace: 1, backoff: { type: "fixed", delay: "1h" } } },
    },
  );
  await utils.addJob("stuck", {}, { queueName: "q" });
  await worker.nth("job:overrun");
  await worker.completed(1);
  const { id } = await utils.addJob("t", {}, { queueName: "q" });
  await utils.forceUnlockWorkers([worker.pool().id]);
  const isReturned = async (): Promise<boolean> =>
    (await queueLock(db)) === worker.pool().id && (await db.job(id))?.locked_at === null;
  await until(async () => ran.length > 0 || (await isReturned()), { what: "it was claimed and returned" });
  expect(ran).toEqual([]);
  stuck.release(0);
  await until(async () => ran.includes(id) && (await queueLock(db)) === null);
});

test.each(["stop", "kill"] as const)(
  "a queue that is kept for a run whose lock was removed is free when its worker has ended (%s)",
  async (end) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const stuck = stubbornTask();
    const options = { concurrency: 2, pollInterval: 50, shutdownGracePeriod: 50 };
    const worker = await startWorker(db, { t: stuck.task }, options);
    const { id } = await utils.addJob("t", {}, { queueName: "q" });
    await stuck.begun(1);
    await utils.forceUnlockWorkers([worker.pool().id]);
    await until(() => isResting(db, id));
    await worker.runner[end]();
    expect(await queueLock(db)).toBeNull();
    expect(await db.job(id)).toMatchObject({ attempts: 1, locked_at: null });
  },
);

test("what a pool lost because it was taken for dead does not start beside runs that go on, nor does the rest of their queue", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const recovery = { heartbeatInterval: 5_000, sweepThreshold: 60_000, sweepInterval: 3_600_000, crashGrace: 60_000 };
  const worker = await startWorker(db, { t: stuck.task }, { concurrency: 4, pollInterval: 50, recovery });
  const formerId = worker.pool().id;
  const free = await utils.addJob("t", {});
  const queued = await utils.addJob("t", {}, { queueName: "q" });
  await stuck.begun(2);
  const next = await utils.addJob("t", {}, { queueName: "q" });
  await db.query("delete from graphile_worker._private_workers");
  await worker.nth("job:lost", 2);
  await db.query("select graphile_worker.recover_dead_worker_jobs($1)", [[formerId]]);
  await until(
    async () =>
      stuck.started.length > 2 ||
      ((await queueLock(db)) === worker.pool().id &&
        (await isResting(db, free.id)) &&
        (await isResting(db, queued.id)) &&
        (await db.job(next.id))?.locked_at === null),
    { what: "all were claimed again, and returned" },
  );
  expect(worker.pool().id).not.toBe(formerId);
  expect(stuck.started).toHaveLength(2);

  stuck.release(1);
  expect((await stuck.begun(3)).job.id).toBe(next.id);
  stuck.release(0);
  stuck.release(2);
  await utils.rescheduleJobs([free.id, queued.id], { runAt: new Date() });
  await stuck.begun(5);
  stuck.release(3);
  stuck.release(4);
  await until(async () => (await db.jobs()).length === 0 && (await queueLock(db)) === null);
  expect(stuck.started).toHaveLength(5);
});
