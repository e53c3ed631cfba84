import { describe, expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";
import { cancellationOf, utilsOf } from "./kit.ts";

const never = 60 * 60_000;

async function addHeld(db: TestDatabase, worker: WorkerProcess, task: string): Promise<string> {
  const [row] = await db.query<{ id: string }>("select id from graphile_worker.add_job($1)", [task]);
  await until(() => worker.holds().includes(row!.id), { what: `job ${row!.id} runs`, withinMs: 60_000 });
  return row!.id;
}

async function isCancelled(db: TestDatabase, id: string): Promise<void> {
  await until(async () => (await cancellationOf(db, id))?.outcome === "cancelled", {
    what: `job ${id} is cancelled`,
    withinMs: 60_000,
  });
  expect(await db.job(id)).toBeUndefined();
}

/** A worker that would run whatever is left, and the proof that it looked at everything. */
async function nothingRunsAgain(db: TestDatabase, id: string): Promise<void> {
  const worker = await startWorker({ connectionString: db.url, pollInterval: 100 });
  await db.query("update graphile_worker._private_jobs set run_at = now() where locked_at is null");
  const [row] = await db.query<{ id: string }>("select id from graphile_worker.add_job('work', run_at => now())");
  await until(async () => !(await db.job(row!.id)), { what: "what came later is done", withinMs: 60_000 });
  await worker.stop();
  expect(worker.runs().map((run) => run.id)).not.toContain(id);
  expect(worker.holds()).not.toContain(id);
}

test("a job that runs in another process is cancelled there", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const worker = await startWorker({ connectionString: db.url, pollInterval: never });
  const id = await addHeld(db, worker, "obey");
  await utils.cancelJobs([id], { reason: "from outside" });
  await isCancelled(db, id);
  await nothingRunsAgain(db, id);
  await worker.stop();
});

test("a new job stops its predecessor in another process, and starts after that one has ended", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const options = { connectionString: db.url, pollInterval: never, concurrency: 1 };
  const first = await startWorker(options);
  const id = (await utils.addJob("obey", {}, { jobKey: "k", queueName: "q" })).id;
  await until(() => first.holds().includes(id), { withinMs: 60_000 });
  const second = await startWorker(options);
  const next = await utils.addJob("obey", {}, { jobKey: "k", queueName: "q", cancelRunning: true });
  await isCancelled(db, id);
  await until(() => [first, second].some((worker) => worker.holds().includes(next.id)), { withinMs: 60_000 });
  expect(first.aborted(id)).toMatch(/Replaced by a new job with the key 'k'/);
  const [ended] = first.runs();
  const start = [first, second].flatMap((worker) => worker.starts()).find((each) => each.id === next.id);
  expect(start!.at).toBeGreaterThan(ended!.endedAt);
  await utils.cancelJobs([next.id]);
  await isCancelled(db, next.id);
  await Promise.all([first.stop(), second.stop()]);
});

test.skipIf(!hasPgBouncer)("behind PgBouncer a cancel is found by the next poll", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const url = await startPgBouncer(db.url);
  const worker = await startWorker({ connectionString: url, noPreparedStatements: true, pollInterval: 200 });
  const id = await addHeld(db, worker, "obey");
  await utils.cancelJobs([id]);
  await isCancelled(db, id);
  await worker.stop();
});

test("a cancel during a worker's outage reaches it when the database is back", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const proxy = await startProxy(db.url);
  const worker = await startWorker({ connectionString: proxy.url, pollInterval: 500 });
  const id = await addHeld(db, worker, "obey");
  proxy.sever();
  await utils.cancelJobs([id]);
  expect((await cancellationOf(db, id))?.outcome).toBeNull();
  proxy.restore();
  await isCancelled(db, id);
  await nothingRunsAgain(db, id);
  await worker.stop();
});

test("a job that ended during an outage, unwritten, and was cancelled meanwhile does not run again", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const proxy = await startProxy(db.url);
  const taskOptions = { obey: { timeout: 2_000, abortGrace: "1h", backoff: { type: "fixed", delay: 1 } } };
  const worker = await startWorker({
    connectionString: proxy.url,
    pollInterval: 500,
    taskOptions,
    tells: ["job:error"],
  });
  const id = await addHeld(db, worker, "obey");
  proxy.sever();
  await until(() => worker.told().includes("job:error"), { withinMs: 60_000 });
  await utils.cancelJobs([id]);
  proxy.restore();
  await isCancelled(db, id);
  await nothingRunsAgain(db, id);
  await worker.stop();
});

describe.each([true, false])("whose worker is killed, with the cancel %s", (isBefore) => {
  test("a job does not run again after a sweep", async () => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    // It cannot hear: the kill comes before it would have stopped.
    const recovery = { heartbeatInterval: 100, sweepThreshold: 60_000 };
    const worker = await startWorker({
      connectionString: db.url,
      useNotifications: false,
      pollInterval: 10_000,
      recovery,
    });
    const id = await addHeld(db, worker, "hold");
    if (isBefore) await utils.cancelJobs([id]);
    worker.kill("SIGKILL");
    await worker.ended;
    if (!isBefore) await utils.cancelJobs([id]);
    await utils.sweepStaleWorkers({ sweepThreshold: 10, recoveryDelay: 0, crashGrace: 0 });
    await until(async () => (await db.job(id))?.locked_at == null);
    await nothingRunsAgain(db, id);
    await isCancelled(db, id);
  });
});

test("a job of a killed worker does not run again after the four-hour rule, or a forced unlock", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const ids: string[] = [];
  const worker = await startWorker({
    connectionString: db.url,
    useNotifications: false,
    pollInterval: 100,
    concurrency: 2,
  });
  for (let n = 0; n < 2; n++) ids.push(await addHeld(db, worker, "hold"));
  worker.kill("SIGKILL");
  await worker.ended;
  await utils.cancelJobs(ids);
  const lockedBy = (await db.job(ids[0]!))!.locked_by!;
  await db.query("update graphile_worker._private_jobs set locked_at = now() - interval '5 hours' where id = $1", [
    ids[0],
  ]);
  await db.query("update graphile_worker._private_jobs set locked_by = 'other' where id = $1", [ids[1]]);
  await utils.forceUnlockWorkers(["other"]);
  expect(lockedBy).toBeTruthy();
  const sweeper = await startWorker({
    connectionString: db.url,
    minResetLockedInterval: 50,
    maxResetLockedInterval: 60,
  });
  for (const id of ids) await isCancelled(db, id);
  expect(sweeper.holds()).toEqual([]);
  await sweeper.stop();
});

test("a job that an original runs finishes or fails there, and is not tried again, by it or by others", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const original = await startOriginal({ connectionString: db.url, pollInterval: 100 });
  const id = await addHeld(db, original, "hold");
  await utils.cancelJobs([id]);
  original.kill("SIGKILL");
  await original.ended;
  await db.query("update graphile_worker._private_jobs set locked_at = now() - interval '5 hours' where id = $1", [id]);
  const second = await startOriginal({
    connectionString: db.url,
    pollInterval: 100,
    minResetLockedInterval: 50,
    maxResetLockedInterval: 60,
  });
  await until(async () => (await db.job(id))?.locked_at === null, {
    what: "the original's sweep frees it",
    withinMs: 60_000,
  });
  const [row] = await db.query<{ id: string }>("select id from graphile_worker.add_job('work')");
  await until(() => second.runs().some((run) => run.id === row!.id), { withinMs: 60_000 });
  expect(second.holds()).toEqual([]);
  await second.stop();
  await nothingRunsAgain(db, id);
});

test("cancels that race with completions: every job is done once or cancelled, and none runs twice", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const workers = await Promise.all(
    [1, 2].map(() => startWorker({ connectionString: db.url, concurrency: 5, pollInterval: 200 })),
  );
  const jobs = await utils.addJobs(
    Array.from({ length: 400 }, (_, n) => ({
      identifier: n % 4 === 0 ? "fail_always" : "work",
      payload: { ms: n % 7 },
    })),
  );
  const ids = jobs.map(({ id }) => id);
  const asked = new Set<string>();
  for (let from = 0; from < ids.length; from += 40) {
    const some = ids.slice(from, from + 40).filter((_, n) => n % 2 === 0);
    const results = await Promise.all([utils.cancelJobs(some), utils.cancelJobs(some.toReversed())]);
    for (const { cancelled, stopping } of results) for (const { id } of [...cancelled, ...stopping]) asked.add(id);
  }
  await until(
    async () => (await db.jobs()).every(({ id, locked_at }) => !asked.has(String(id)) && locked_at === null),
    {
      what: "every cancelled job is gone",
      withinMs: 60_000,
    },
  );
  await db.query("update graphile_worker._private_jobs set run_at = now()");
  await db.query("select pg_notify('jobs:insert', '{}')");
  const [last] = await utils.addJobs([{ identifier: "work", payload: {}, runAt: new Date(Date.now() + 1) }]);
  await until(async () => !(await db.job(last!.id)), { withinMs: 60_000 });
  for (const worker of workers) await worker.stop();
  const runs = workers.flatMap((worker) => worker.runs()).filter(({ id }) => asked.has(id));
  expect(new Set(runs.map(({ id }) => id)).size).toBe(runs.length);
});

test("a timeout stops a job in its process, and another one takes it over", async () => {
  const db = await freshDatabase();
  const taskOptions = { hold: { timeout: 200, abortGrace: 100, backoff: { type: "fixed", delay: 1 } } };
  const first = await startWorker({ connectionString: db.url, pollInterval: 100, taskOptions, tells: ["job:overrun"] });
  const id = await addHeld(db, first, "hold");
  await until(() => first.told().includes("job:overrun"), { withinMs: 60_000 });
  await until(async () => (await db.job(id))?.last_error?.includes("timeout"), { withinMs: 60_000 });
  const second = await startWorker({ connectionString: db.url, pollInterval: 100 });
  await until(
    async () => {
      await db.query("update graphile_worker._private_jobs set run_at = now() where locked_at is null");
      return second.holds().includes(id);
    },
    { withinMs: 60_000 },
  );
  expect(first.holds()).toEqual([id]);
  second.release();
  first.release();
  await until(async () => !(await db.job(id)), { withinMs: 60_000 });
  await Promise.all([first.stop(), second.stop()]);
});
