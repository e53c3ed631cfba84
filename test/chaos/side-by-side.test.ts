import { expect, test, vi } from "vitest";
import { originalDatabase } from "../compat/both-ways.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { logQueues, tellQueues } from "../support/queue-log.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 90_000 });

// Ours and Graphile Worker 0.18, in processes of their own, on one schema at the same time.

const queues = 12;

interface Added {
  /** These run once. */
  readonly once: string[];
  /** These run once at most: each was replaced, and may have been claimed and not started when that happened. */
  readonly replaced: string[];
  /** These fail at first. */
  readonly twice: string[];
}

/** Adds plain jobs, jobs in queues, jobs that fail at first, and keys that are used again and again. */
async function addJobs(db: TestDatabase, rounds: number): Promise<Added> {
  const once: string[] = [];
  const keyed = new Map<number, Set<string>>();
  const twice: string[] = [];
  const ids = async (text: string): Promise<string[]> =>
    (await db.query<{ id: string }>(`select (${text}).id from generate_series(1, 40) as n`)).map(({ id }) => id);
  for (let round = 0; round < rounds; round++) {
    once.push(...(await ids(`graphile_worker.add_job('work')`)));
    once.push(...(await ids(`graphile_worker.add_job('work', '{"ms":3}', 'queue ' || n % ${queues})`)));
    twice.push(
      ...(
        await ids(`graphile_worker.add_job('fail_first', '{}', case when n % 2 = 0 then 'queue ' || n % ${queues} end)`)
      ).slice(0, 5),
    );
    const given = await ids(`graphile_worker.add_job('work', job_key => 'key of ${rounds} rounds ' || n % 10)`);
    // A job that was changed before it ran is given out more than once.
    for (const [index, id] of given.entries()) keyed.set(index % 10, (keyed.get(index % 10) ?? new Set()).add(id));
  }
  const lines = [...keyed.values()].map((line) => [...line]);
  return {
    once: [...once, ...lines.map((line) => line.at(-1)!)],
    replaced: lines.flatMap((line) => line.slice(0, -1)),
    twice,
  };
}

/** Failed jobs rest for seconds; the test has no time for that. What workers lock is passed over: theirs may be any order. */
async function hurry(db: TestDatabase): Promise<void> {
  await db.query(`
    update graphile_worker._private_jobs set run_at = now()
    where id in (
      select id from graphile_worker._private_jobs where attempts > 0 and locked_at is null order by id for update skip locked
    )`);
}

function untilDone(db: TestDatabase): Promise<unknown> {
  return until(
    async () => {
      await hurry(db);
      return (await db.jobs()).length === 0;
    },
    { what: "every job is done", withinMs: 40_000 },
  );
}

async function expectAllRight(
  db: TestDatabase,
  workers: readonly WorkerProcess[],
  { once, replaced, twice }: Added,
): Promise<void> {
  for (const worker of workers) expect(await worker.stop()).toBe(0);
  const runs = allRuns(workers);
  const counts = countRuns(runs);
  const runsOf = (id: string): unknown => runs.filter((run) => run.id === id);
  expect(once.filter((id) => counts.get(id) !== 1).map((id) => [id, runsOf(id)])).toEqual([]);
  expect(replaced.filter((id) => (counts.get(id) ?? 0) > 1).map((id) => [id, runsOf(id)])).toEqual([]);
  expect(twice.filter((id) => counts.get(id) !== 2).map((id) => [id, runsOf(id)])).toEqual([]);
  const overlaps = findOverlaps(runs);
  expect(overlaps, overlaps.length > 0 ? await tellQueues(db, overlaps) : "").toEqual([]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
}

/** Nobody stood by. */
function expectAllWorked(workers: readonly WorkerProcess[]): void {
  expect(workers.map((worker) => worker.runs().length).filter((runs) => runs < 10)).toEqual([]);
}

test("every job runs once and queues stay serial, in a schema of the original", async () => {
  const db = await originalDatabase();
  await logQueues(db);
  const options = { connectionString: db.url, concurrency: 4, pollInterval: 500 };
  const workers = await Promise.all([startOriginal(options), startOriginal(options)]);
  const before = await addJobs(db, 3);
  // Ours adopt the schema while the originals work on it.
  workers.push(...(await Promise.all([startWorker(options), startWorker(options)])));
  const after = await addJobs(db, 8);
  await untilDone(db);
  expectAllWorked(workers);
  await expectAllRight(db, workers, {
    once: [...before.once, ...after.once],
    replaced: [...before.replaced, ...after.replaced],
    twice: [...before.twice, ...after.twice],
  });
  await db.drop();
});

test("every job runs once and queues stay serial, in a schema of ours", async () => {
  const db = await freshDatabase();
  await logQueues(db);
  const options = { connectionString: db.url, concurrency: 4, pollInterval: 500 };
  const workers = await Promise.all([startWorker(options), startWorker(options)]);
  const before = await addJobs(db, 3);
  workers.push(...(await Promise.all([startOriginal(options), startOriginal(options)])));
  const after = await addJobs(db, 8);
  await untilDone(db);
  expectAllWorked(workers);
  await expectAllRight(db, workers, {
    once: [...before.once, ...after.once],
    replaced: [...before.replaced, ...after.replaced],
    twice: [...before.twice, ...after.twice],
  });
});

test("a killed process keeps its queue closed to everybody, and disturbs nobody else", async () => {
  const db = await freshDatabase();
  await logQueues(db);
  const options = { connectionString: db.url, concurrency: 4, pollInterval: 300 };
  const victim = await startWorker(options);
  const [held] = await db.query<{ id: string }>(`select (graphile_worker.add_job('hold', queue_name => 'closed')).id`);
  await until(() => victim.holds().includes(held!.id));
  const workers = await Promise.all([startWorker(options), startOriginal(options)]);
  victim.kill("SIGKILL");
  expect(await victim.ended).toBe("SIGKILL");

  await db.query(`select graphile_worker.add_job('work', queue_name => 'closed') from generate_series(1, 5)`);
  const added = await addJobs(db, 2);
  await until(async () => {
    await hurry(db);
    return (await db.jobs()).every(({ queue_name }) => queue_name === "closed");
  });
  const [first, ...rest] = await db.jobs();
  expect(first).toMatchObject({ id: held!.id, attempts: 1, locked_by: expect.stringContaining("pool-") });
  expect(rest.map(({ attempts, locked_by }) => [attempts, locked_by])).toEqual(Array(5).fill([0, null]));

  // The four-hour rule, as both have it: locks that old are forgotten.
  await db.query(`
    with jobs as (update graphile_worker._private_jobs set locked_at = now() - interval '5 hours' where locked_at is not null)
    update graphile_worker._private_job_queues set locked_at = now() - interval '5 hours' where locked_at is not null`);
  workers.push(await startWorker({ ...options, minResetLockedInterval: 1, maxResetLockedInterval: 1 }));
  await until(() => workers.some((worker) => worker.holds().includes(held!.id)));
  for (const worker of workers) worker.release();
  await untilDone(db);
  await expectAllRight(db, workers, added);
});
