import { beforeEach, expect, test } from "vitest";
import { type Database, poolDatabase } from "../../../src/db/database.ts";
import { claimJobs } from "../../../src/db/statements/claim.ts";
import { returnJobs, type UnwrittenRow } from "../../../src/db/statements/settle.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";

// A pool returns jobs that it claimed and did not start. On the way there, somebody unlocks the pool by force, and the jobs are claimed again.

let db: TestDatabase;
let database: Database;
const ids = ["1", "2"];

beforeEach(async () => {
  db = await freshDatabase();
  database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: false });
  await db.query(
    "select graphile_worker.add_job('t', job_key => 'plain'), graphile_worker.add_job('t', queue_name => 'q')",
  );
  await claim("pool");
});

async function claim(poolId: string): Promise<void> {
  const tasks = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");
  const [row] = await database.run(claimJobs, {
    poolId,
    workerNames: [poolId],
    taskIds: tasks.map(({ id }) => id),
    wanted: 10,
    perQueue: 10,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
  });
  expect(JSON.parse(row!.jobs!)).toHaveLength(2);
}

async function giveBack(attempt: number): Promise<UnwrittenRow> {
  const [row] = await database.run(returnJobs, {
    poolId: "pool",
    jobIds: ids,
    attempts: ids.map(() => attempt),
    queueIds: [1],
    hasStarted: false,
    delayMs: null,
    reason: null,
  });
  return { ...row!, lost: row!.lost?.toSorted() ?? null };
}

const everything = { lost: null, held: null, held_queues: null };
const nothing = { lost: ids, held: null, held_queues: null };

async function locks(): Promise<unknown[]> {
  return db.query(`
    select locked_by, attempts from graphile_worker._private_jobs
    union all select locked_by, null from graphile_worker._private_job_queues order by attempts nulls last`);
}

function lockedBy(pool: string | null, attempts: number): unknown[] {
  return [
    { locked_by: pool, attempts },
    { locked_by: pool, attempts },
    { locked_by: pool, attempts: null },
  ];
}

test("a return whose jobs are still the pool's unlocks them and their queue, with the attempt restored", async () => {
  expect(await giveBack(1)).toEqual(everything);
  expect(await locks()).toEqual(lockedBy(null, 0));
});

test("a return that comes late leaves alone what the same pool has claimed again meanwhile", async () => {
  await db.query("select graphile_worker.force_unlock_workers(array['pool'])");
  await claim("pool");
  expect(await giveBack(1)).toEqual(nothing);
  expect(await locks()).toEqual(lockedBy("pool", 2));
  // The claim that counts is returned as any other.
  expect(await giveBack(2)).toEqual(everything);
  expect(await locks()).toEqual(lockedBy(null, 1));
});

test("a return that comes late leaves alone what another pool has claimed meanwhile", async () => {
  await db.query("select graphile_worker.force_unlock_workers(array['pool'])");
  await claim("other");
  for (const attempt of [1, 2]) expect(await giveBack(attempt)).toEqual(nothing);
  expect(await locks()).toEqual(lockedBy("other", 2));
});

test("a return that comes late leaves alone what nobody has", async () => {
  await db.query("select graphile_worker.force_unlock_workers(array['pool'])");
  expect(await giveBack(1)).toEqual(nothing);
  expect(await locks()).toEqual(lockedBy(null, 1));
});

test("a job whose attempts were reset by hand after its claim is returned all the same", async () => {
  await db.query("update graphile_worker._private_jobs set attempts = 0");
  expect(await giveBack(1)).toEqual(everything);
  expect(await locks()).toEqual(lockedBy(null, 0));
});

test("a job that was removed after its claim has no attempts left, and is deleted by its return", async () => {
  await db.query("select graphile_worker.remove_job('plain')");
  expect(await giveBack(1)).toEqual(everything);
  expect(await db.jobs()).toMatchObject([{ id: "2", attempts: 0, locked_by: null }]);
});
