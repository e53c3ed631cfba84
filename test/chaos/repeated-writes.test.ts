import { expect, test } from "vitest";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { claimJobs } from "../../src/db/statements/claim.ts";
import { completeJobs, failJobs, returnStrays } from "../../src/db/statements/settle.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";

// A write whose answer is lost is sent again, and by then the same pool may hold other things.

const poolId = "pool-1";

async function setUp(jobs: number): Promise<{ db: TestDatabase; database: Database; claim(): Promise<string[]> }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  await db.query(
    `select graphile_worker.add_job('work', queue_name => 'queue', max_attempts => 5) from generate_series(1, $1)`,
    [jobs],
  );
  const [task] = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");
  const claim = async (): Promise<string[]> => {
    const [result] = await database.run(claimJobs, {
      poolId,
      taskIds: [task!.id],
      wanted: 1,
      perQueue: 1,
      forbidden: null,
      accepted: null,
      clock: null,
      marks: [],
      withQueues: true,
      relaxed: false,
    });
    return (JSON.parse(result?.jobs ?? "[]") as [string][]).map(([id]) => id);
  };
  return { db, database, claim };
}

async function queueOwner(db: TestDatabase): Promise<unknown> {
  const [queue] = await db.query("select locked_by from graphile_worker._private_job_queues");
  return queue?.locked_by;
}

test("completing again does not free a queue whose next job runs", async () => {
  const { db, database, claim } = await setUp(2);
  const [first] = await claim();
  const complete = () => database.run(completeJobs, { poolId, jobIds: [first!], queueIds: [1] });
  expect(await complete()).toEqual([{ lost: null, held: null, held_queues: null }]);
  expect(await queueOwner(db)).toBeNull();

  const [second] = await claim();
  expect(await complete()).toEqual([{ lost: [first], held: null, held_queues: null }]);
  expect(await queueOwner(db)).toBe(poolId);

  await database.run(completeJobs, { poolId, jobIds: [second!], queueIds: [1] });
  expect(await queueOwner(db)).toBeNull();
});

test.each([5, 2])("failing again does not end a later attempt that runs, of %i", async (maxAttempts) => {
  const { db, database, claim } = await setUp(1);
  await db.query("update graphile_worker._private_jobs set max_attempts = $1", [maxAttempts]);
  const [id] = await claim();
  const fail = (isInDoubt: boolean) =>
    database.run(failJobs, {
      poolId,
      jobIds: [id!],
      attempts: [1],
      errors: ["boom"],
      payloads: [null],
      queueIds: [1],
      isInDoubt,
    });
  expect(await fail(false)).toEqual([{ lost: null, held: null, held_queues: null, cancelled: null }]);

  await db.query("update graphile_worker._private_jobs set run_at = now()");
  expect(await claim()).toEqual([id]);
  expect(await fail(true)).toEqual([{ lost: [id], held: null, held_queues: null, cancelled: null }]);
  expect(await db.job(id!)).toMatchObject({ attempts: 2, locked_by: poolId });
  expect(await queueOwner(db)).toBe(poolId);
});

test("a queue of a job that somebody removed is freed all the same", async () => {
  const { db, database, claim } = await setUp(1);
  const [id] = await claim();
  await db.query("delete from graphile_worker._private_jobs");
  await database.run(completeJobs, { poolId, jobIds: [id!], queueIds: [1] });
  expect(await queueOwner(db)).toBeNull();
});

test("what a pool holds without knowing is returned with its attempt; what it knows of stays", async () => {
  const { db, database, claim } = await setUp(1);
  await db.query("select graphile_worker.add_job('work')");
  const [inQueue] = await claim();
  const [free] = await claim();
  await database.run(returnStrays, { poolId, heldJobIds: [free!], heldQueueIds: [] });
  expect(await db.job(inQueue!)).toMatchObject({ attempts: 0, locked_by: null });
  expect(await queueOwner(db)).toBeNull();
  expect(await db.job(free!)).toMatchObject({ attempts: 1, locked_by: poolId });
});
