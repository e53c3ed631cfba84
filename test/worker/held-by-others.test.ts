import type { PoolClient } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { OutageLog } from "../../src/db/outage-log.ts";
import type { Job } from "../../src/job.ts";
import { Outage } from "../../src/worker/settle/outage.ts";
import { Returns } from "../../src/worker/settle/returns.ts";
import { SureWrites } from "../../src/worker/settle/sure-writes.ts";
import { interruptJobs } from "../../src/worker/stop/interrupt-jobs.ts";
import type { Worker, WorkerPool } from "../../src/worker.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { addCrowdedQueues, heldTask, startWorker } from "./kit.ts";

/*
 * Applications that keep transactions open on rows of ours: they delay those rows and nothing else. No poll comes within these tests,
 * so what runs was found by a claim, or by a scan that a claim promised.
 */

/** A transaction of an application that has done this and does not end; `end` commits it. */
async function leaveOpen(db: TestDatabase, text: string): Promise<{ end(): Promise<void> }> {
  const client: PoolClient = await db.pool.connect();
  let isOver = false;
  const end = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    await client.query("commit");
    client.release();
  };
  onTestFinished(end);
  await client.query("begin");
  await client.query(text);
  return { end };
}

test("while an application has re-added a running job and not committed, all else is settled and queues go on", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { completed, of, lines } = await startWorker(
    db,
    { slow: held.task, quick: () => undefined },
    { concurrency: 30, maxPoolSize: 30 },
  );
  await db.query("select graphile_worker.add_job('slow', job_key => 'k', queue_name => 'queue of k')");
  await db.query(
    "select graphile_worker.add_job('slow', queue_name => 'queue ' || n) from generate_series(1, 25) as n",
  );
  await held.begun(26);
  const application = await leaveOpen(db, "select graphile_worker.add_job('quick', job_key => 'k')");
  held.releaseAll();
  await completed(25);
  // The next of every queue, that of the job whose row is held among them.
  await db.query(
    "select graphile_worker.add_job('quick', queue_name => 'queue ' || n) from generate_series(1, 25) as n",
  );
  await db.query("select graphile_worker.add_job('quick', queue_name => 'queue of k')");
  await completed(51);
  // More than may be finished and not written.
  await db.query("select graphile_worker.add_job('quick') from generate_series(1, 5000)");
  await completed(5051);
  expect(of("job:complete").some(({ job }) => job.key === "k")).toBe(false);
  expect((await db.jobs()).map(({ key }) => key)).toEqual(["k"]);

  await application.end();
  await completed(5053);
  expect(
    of("job:complete")
      .slice(5051)
      .map(({ job }) => job.task_identifier)
      .sort(),
  ).toEqual(["quick", "slow"]);
  expect(of("job:lost")).toEqual([]);
  expect(await db.jobs()).toEqual([]);
  expect(lines.filter(({ level }) => level === "error" || level === "warning")).toEqual([]);
});

test.each(["failed", "returned"] as const)(
  "a job that is %s while an application holds its row is written when it lets go",
  async (how) => {
    const db = await freshDatabase();
    const held = heldTask();
    const worker = await startWorker(
      db,
      { t: held.task },
      { concurrency: 2, ...(how === "returned" && { shutdownGracePeriod: 1 }) },
    );
    await db.query("select graphile_worker.add_job('t'), graphile_worker.add_job('t')");
    await held.begun(2);
    const ids = held.started.map(({ id }) => id);
    const application = await leaveOpen(
      db,
      `select from graphile_worker._private_jobs where id = ${ids[0]} for update`,
    );
    const stopping = how === "returned" ? worker.runner.stop() : undefined;
    if (how === "failed") for (const index of [0, 1]) held.release(index, new Error("no"));
    await until(async () => (await db.job(ids[1]!))?.locked_by === null, { what: "the row that is free is written" });
    expect(await db.job(ids[0]!)).toMatchObject({ attempts: 1, locked_by: held.started[0]!.locked_by });
    await application.end();
    await stopping;
    await until(async () => (await db.job(ids[0]!))?.locked_by === null, { what: "the other one is written" });
    const attempts = how === "failed" ? 1 : 0;
    expect((await db.jobs()).map((job) => job.attempts)).toEqual([attempts, attempts]);
  },
);

test("a returned job that an application holds is moved when it lets go, and others are moved meanwhile", async () => {
  const db = await freshDatabase();
  const { logger } = rememberingLogger();
  const workerPool = {} as WorkerPool;
  const outage = new Outage(new OutageLog(logger), logger, () => undefined);
  const writes = new SureWrites({
    workerPool,
    emit: Object.assign(() => undefined, { heard: () => false }),
    logger,
    outage,
  });
  const returns = new Returns({
    database: poolDatabase(db.pool, { schema: "graphile_worker", preparedStatements: true }),
    workerPool,
    writes,
    unwritten: { endedIn: () => [] },
    onReturned: () => undefined,
    onThrough: () => undefined,
  });
  const runAt = new Date(Date.now() + 3_600_000);
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 2)");
  const [first, second] = await db.jobs();
  const application = await leaveOpen(
    db,
    `select from graphile_worker._private_jobs where id = ${first!.id} for update`,
  );
  const interrupted: string[] = [];
  const moving = interruptJobs(
    [first, second].map((job) => ({ job: job as Job, worker: {} as Worker })),
    {
      decide: async () => ({ runAt, attempts: 3 }),
      isRunning: () => true,
      abort: () => undefined,
      abandon: () => null,
      returnJobs: async () => new Set(), // they are in line already
      move: (job, to) => returns.move(job, to),
      fail: async () => false,
      onInterrupted: ({ job }) => interrupted.push(job.id),
    },
  );
  await until(() => interrupted.includes(second!.id), { what: "the one that nobody holds is moved" });
  expect(
    await db.query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"),
  ).toEqual([]);
  expect(await db.job(first!.id)).toMatchObject({ attempts: 0, run_at: first!.run_at });
  await application.end();
  await moving;
  expect(await db.jobs()).toMatchObject([
    { attempts: 3, run_at: runAt },
    { attempts: 3, run_at: runAt },
  ]);
});

test("a queue is released although an application holds its row and that of the job that has ended", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { completed } = await startWorker(db, { slow: held.task, quick: () => undefined }, { concurrency: 2 });
  await db.query("select graphile_worker.add_job('slow', queue_name => 'q')");
  await held.begun(1);
  const application = await leaveOpen(
    db,
    "select from graphile_worker._private_jobs, graphile_worker._private_job_queues for update",
  );
  held.releaseAll();
  // Each of these is settled after the first try to settle that one.
  await db.query("select graphile_worker.add_job('quick')");
  await completed(1);
  await db.query("select graphile_worker.add_job('quick')");
  await completed(2);
  await application.end();
  await db.query("select graphile_worker.add_job('quick', queue_name => 'q')");
  await completed(4);
  await until(
    async () => (await db.query("select from graphile_worker._private_job_queues where is_available")).length > 0,
  );
});

test("one row that an open re-add holds, behind hundreds of a task that this worker lacks, delays nothing behind it", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('other') from generate_series(1, 600)");
  await db.query("select graphile_worker.add_job('t', job_key => 'k')");
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 20)");
  const application = await leaveOpen(db, "select graphile_worker.add_job('t', job_key => 'k')");
  const { completed } = await startWorker(db, { t: () => undefined }, { concurrency: 4 });
  await completed(20);
  await application.end();
  await completed(21);
});

test("thousands of rows that an open reschedule_jobs holds delay nothing behind them", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 3020)");
  const application = await leaveOpen(
    db,
    "select graphile_worker.reschedule_jobs(array(select generate_series(1, 3000)), priority => 1)",
  );
  const { completed } = await startWorker(db, { t: () => undefined }, { concurrency: 4 });
  await completed(20);
  await application.end();
  await completed(3020);
});

test.each(["before the worker starts", "while the worker sleeps"])(
  "one due job among thousands of queues, behind hundreds of jobs of a queue that is held, starts within a few claims (added %s)",
  async (when) => {
    const db = await freshDatabase();
    await addCrowdedQueues(db);
    const add = () => db.query("select graphile_worker.add_job('t', queue_name => 'customer 4321')");
    const isLate = when === "while the worker sleeps";
    if (!isLate) await add();
    // Its poll never comes, so each claim was promised by the one before it, or made because of the new job.
    const { nth, of } = await startWorker(db, { t: () => undefined });
    if (isLate) await nth("worker:getJob:empty");
    const before = of("worker:getJob:start").length;
    if (isLate) await add();
    await nth("job:start");
    expect(of("worker:getJob:start").length - before).toBeLessThanOrEqual(5);
  },
);

test("what waits behind a slow head of its queue can be removed and replaced, while quick jobs flow", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const ran: string[] = [];
  const { completed, of, runner } = await startWorker(
    db,
    {
      quick: () => undefined,
      slow: held.task,
      t: (payload) => void ran.push(payload as string),
    },
    { concurrency: 4 },
  );
  // Quick jobs first, so that the pool holds ahead as many as it ever will, and all the time.
  const flow = { isOn: true };
  const flowing = (async () => {
    while (flow.isOn) await runner.addJobs(Array.from({ length: 50 }, () => ({ identifier: "quick", payload: {} })));
  })();
  onTestFinished(async () => {
    flow.isOn = false;
    await flowing;
  });
  await completed(1000);
  await db.query(`
    select graphile_worker.add_job('slow', queue_name => 'q'),
      graphile_worker.add_job('t', '"second"', queue_name => 'q', job_key => 'second'),
      graphile_worker.add_job('t', '"third"', queue_name => 'q', job_key => 'third')`);
  await held.begun(1);
  await db.query("select graphile_worker.remove_job('second')");
  await db.query(`select graphile_worker.add_job('t', '"replacement"', queue_name => 'q', job_key => 'third')`);
  const locked = (): Promise<unknown[]> =>
    db.query(`
      select job.id from graphile_worker._private_jobs as job join graphile_worker._private_job_queues as queue
        on queue.id = job.job_queue_id and queue.queue_name = 'q'
      where job.locked_at is not null`);
  await until(async () => (await locked()).length === 1, { what: "nothing is held behind the head" });
  const before = of("job:complete").length;
  await completed(before + 1000);
  held.releaseAll();
  await until(() => ran.length > 0, { what: "the replacement has run" });
  flow.isOn = false;
  await flowing;
  await until(async () => (await db.jobs()).length === 0, { what: "everything is done" });
  expect(ran).toEqual(["replacement"]);
}, 120_000);
