import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess, type WorkerProcessOptions } from "../support/worker-process.ts";

const patient = { withinMs: 60_000 };
const rests = { type: "fixed", delay: "1h" };

async function add(db: TestDatabase, task: string, payload: object = {}): Promise<string> {
  const [row] = await db.query<{ id: string }>("select id from graphile_worker.add_job($1, $2)", [
    task,
    JSON.stringify(payload),
  ]);
  return row!.id;
}

function startTimed(options: WorkerProcessOptions, timing: Record<string, unknown> = {}): Promise<WorkerProcess> {
  const limits = { timeout: 300, abortGrace: "1h", backoff: rests, ...timing };
  return startWorker({
    pollInterval: 500,
    taskOptions: { obey: limits, hold: limits, work: limits },
    tells: ["job:timeout", "job:overrun", "job:complete"],
    ...options,
  });
}

/** Its attempt was used, once, and it waits for its next. */
async function hasTimedOut(db: TestDatabase, id: string, attempts = 1): Promise<void> {
  await until(
    async () => {
      const job = await db.job(id);
      return job?.attempts === attempts && job.locked_at === null && job.last_error?.includes("timeout of");
    },
    { what: `job ${id} has timed out`, ...patient },
  );
}

test.skipIf(!hasPgBouncer)("behind PgBouncer a job times out once, and its attempt is written", async () => {
  const db = await freshDatabase();
  const url = await startPgBouncer(db.url);
  const worker = await startTimed({ connectionString: url, noPreparedStatements: true });
  const id = await add(db, "obey");
  await hasTimedOut(db, id);
  await worker.stop();
  expect(worker.started()).toEqual([id]);
});

test("a job that times out during an outage is told in time, and its failure is written once the database is back", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const worker = await startTimed({ connectionString: proxy.url }, { timeout: 2_000 });
  const id = await add(db, "obey");
  await until(() => worker.holds().includes(id), patient);
  proxy.sever();
  await until(() => worker.finished().includes(id), { what: "it has ended", ...patient });
  expect(worker.aborted(id)).toMatch(/timeout of 2000 ms/);
  expect(await db.job(id)).toMatchObject({ attempts: 1, locked_by: expect.any(String), last_error: null });
  proxy.restore();
  await hasTimedOut(db, id);
  await worker.stop();
  expect(worker.started()).toEqual([id]);
});

test("an overrun during an outage is written once, and the slot stays taken meanwhile", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const worker = await startTimed(
    { connectionString: proxy.url, concurrency: 1 },
    { timeout: 1_500, abortGrace: 100, backoff: { type: "fixed", delay: 1 } },
  );
  const id = await add(db, "hold");
  await until(() => worker.holds().includes(id), patient);
  proxy.sever();
  await until(() => worker.told().includes("job:overrun"), patient);
  proxy.restore();
  await until(async () => (await db.job(id))?.last_error?.includes("timeout of"), patient);
  expect(worker.started()).toEqual([id]);
  worker.release();
  await until(async () => !(await db.job(id)), { what: "the next attempt succeeds", ...patient });
  const runs = worker.runs().filter((run) => run.id === id);
  expect(runs).toHaveLength(2);
  expect(runs[1]!.startedAt).toBeGreaterThanOrEqual(runs[0]!.endedAt);
  await worker.stop();
});

test("a worker that is killed after a timeout, before and after it is written, leaves a job that runs again", async () => {
  const db = await freshDatabase();
  const recovery = { heartbeatInterval: 100, sweepThreshold: 60_000 };
  const unlock = "select graphile_worker.force_unlock_workers(array[$1])";
  for (const isWritten of [true, false]) {
    const proxy = await startProxy(db.url);
    const worker = await startTimed({ connectionString: proxy.url, recovery }, { timeout: 2_000, abortGrace: 100 });
    const id = await add(db, "hold");
    await until(() => worker.holds().includes(id), patient);
    const owner = (await db.job(id))!.locked_by!;
    if (!isWritten) proxy.sever();
    await until(() => worker.told().includes("job:overrun"), patient);
    if (isWritten) await hasTimedOut(db, id);
    worker.kill("SIGKILL");
    await worker.ended;
    expect((await db.job(id))!.locked_by).toBe(isWritten ? null : owner);
    await db.query(unlock, [owner]);
    await db.query("update graphile_worker._private_jobs set run_at = now()");
    const heir = await startWorker({ connectionString: db.url, pollInterval: 200 });
    await until(() => heir.holds().includes(id), { what: "the heir runs it", ...patient });
    heir.release();
    await until(async () => !(await db.job(id)), patient);
    expect(heir.started()).toEqual([id]);
    await heir.stop();
  }
}, 120_000);

test("a job times out again on its next attempt, and each time uses one", async () => {
  const db = await freshDatabase();
  const worker = await startTimed({ connectionString: db.url }, { backoff: { type: "fixed", delay: 1 } });
  const id = await add(db, "obey");
  await until(() => worker.told().filter((name) => name === "job:timeout").length >= 3, patient);
  await worker.stop();
  const job = (await db.job(id))!;
  expect(job).toMatchObject({ locked_at: null, attempts: worker.started().length });
  const runs = worker.runs();
  for (const [n, run] of runs.entries()) {
    if (n > 0) expect(run.startedAt).toBeGreaterThanOrEqual(runs[n - 1]!.endedAt);
  }
});

test("timeouts that race with completions: every job is done or failed once per attempt, and none overlaps itself", async () => {
  const db = await freshDatabase();
  const limits = { timeout: 30, abortGrace: 5, backoff: { type: "fixed", delay: 1 }, replaceStuckSlots: 3 };
  const workers = await Promise.all(
    [1, 2].map(() =>
      startWorker({ connectionString: db.url, concurrency: 5, pollInterval: 200, taskOptions: { work: limits } }),
    ),
  );
  const ids: string[] = [];
  // Around the timeout, and around the end of the grace.
  for (let n = 0; n < 200; n++) ids.push(await add(db, "work", { ms: 20 + (n % 25) }));
  await until(async () => (await db.jobs()).every(({ attempts }) => attempts >= 2), {
    what: "every job is done or has been tried twice",
    ...patient,
  });
  for (const worker of workers) await worker.stop();
  const left = await db.jobs();
  expect(left.filter(({ locked_at }) => locked_at !== null)).toEqual([]);
  for (const worker of workers) {
    const ended = worker.runs();
    for (const id of ids) {
      const own = ended.filter((run) => run.id === id).toSorted((a, b) => a.startedAt - b.startedAt);
      for (const [n, run] of own.entries()) {
        if (n > 0) expect(run.startedAt).toBeGreaterThanOrEqual(own[n - 1]!.endedAt);
      }
    }
  }
  for (const { id, attempts } of left) {
    const started = workers.flatMap((worker) => worker.started()).filter((each) => each === String(id));
    expect(started.length, `job ${id} was started once per attempt`).toBe(attempts);
  }
});
