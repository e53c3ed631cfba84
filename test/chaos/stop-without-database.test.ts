import { expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { allRuns } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess, type WorkerProcessOptions } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 90_000 });

interface Owing {
  readonly db: TestDatabase;
  readonly proxy: Awaited<ReturnType<typeof startProxy>>;
  readonly worker: WorkerProcess;
  readonly jobId: string;
}

async function setUp(task: string): Promise<Omit<Owing, "worker">> {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const [job] = await db.query<{ id: string }>(`select (graphile_worker.add_job($1, queue_name => 'queue')).id`, [
    task,
  ]);
  return { db, proxy, jobId: job!.id };
}

/** A worker that has claimed a job and never heard of it, because the database went away with the answer. */
async function claimUnheard(options: WorkerProcessOptions = {}): Promise<Owing> {
  const { db, proxy, jobId } = await setUp("work");
  const severed = proxy.cutAfter("claim_jobs").then(() => proxy.sever());
  const worker = await startWorker({ ...options, connectionString: proxy.url });
  await severed;
  await until(async () => (await db.job(jobId))?.locked_by, { what: "the claim is through" });
  return { db, proxy, jobId, worker };
}

/** A worker that runs a job when the database goes away. */
async function loseWhileRunning(options: WorkerProcessOptions = {}): Promise<Owing> {
  const { db, proxy, jobId } = await setUp("hold");
  const worker = await startWorker({ ...options, connectionString: proxy.url });
  await until(() => worker.holds().includes(jobId));
  proxy.sever();
  return { db, proxy, jobId, worker };
}

/** A worker whose job ended when nobody was there to be told. */
async function endUnwritten(options: WorkerProcessOptions = {}): Promise<Owing> {
  const owing = await loseWhileRunning(options);
  owing.worker.release();
  await until(() => allRuns([owing.worker]).length > 0);
  return owing;
}

async function lockedQueues(db: TestDatabase): Promise<number> {
  return (await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).length;
}

test("a worker told to end waits for the database to return a job that it claimed unheard", async () => {
  const { db, proxy, worker, jobId } = await claimUnheard();
  worker.kill("SIGTERM");
  await until(() => worker.logged(/Received 'SIGTERM'/).length > 0);
  proxy.restore();
  expect(await worker.ended).toBe(0);
  expect(await db.job(jobId)).toMatchObject({ locked_by: null, attempts: 0 });
  expect(await lockedQueues(db)).toBe(0);
});

test("a worker told to end waits for the database to write how its job ended", async () => {
  const { db, proxy, worker } = await endUnwritten();
  worker.kill("SIGTERM");
  await until(() => worker.logged(/Received 'SIGTERM'/).length > 0);
  proxy.restore();
  expect(await worker.ended).toBe(0);
  expect(await db.jobs()).toEqual([]);
  expect(await lockedQueues(db)).toBe(0);
});

test.each([
  ["that claimed a job unheard", claimUnheard],
  ["whose job ended unwritten", endUnwritten],
  ["whose job is to be returned", loseWhileRunning],
])("a worker %s ends without a database that stays unreachable, and says what that means", async (_which, owe) => {
  const { db, worker, jobId } = await owe({ shutdownGracePeriod: 100 });
  worker.kill("SIGTERM");
  // As a process that failed to drain: not with code 0.
  expect(await worker.ended).toBe("SIGTERM");
  expect(
    worker.logged(/did not accept the worker's last writes within 5\.1 s.*stay locked until recovery releases them/),
  ).toHaveLength(1);
  expect(await db.job(jobId)).toMatchObject({ attempts: 1, locked_by: expect.any(String) });
});
