import type { PoolClient } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { clientDatabase } from "../../src/db/database.ts";
import { claimJobs } from "../../src/db/statements/claim.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";

/** So many that nobody would want to read them for every claim. */
const many = 20_000;

interface Claimed {
  readonly ids: string[];
  /** Index entries and rows of the table of jobs that the claim read. */
  readonly read: number;
}

/** Claims in a transaction of its own, which is rolled back, and says what that read. */
async function claim(db: TestDatabase, wanted = 10): Promise<Claimed> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  const tasks = await db.query<{ id: number }>("select id from graphile_worker._private_tasks order by id");
  const database = clientDatabase(client, { schema: db.schema, preparedStatements: false });
  await client.query("begin");
  const before = await jobsRead(client);
  const [result] = await database.run(claimJobs, {
    poolId: "pool",
    workerNames: ["pool"],
    taskIds: tasks.map(({ id }) => id),
    wanted,
    perQueue: 1,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
  });
  const read = (await jobsRead(client)) - before;
  await client.query("rollback");
  return { ids: (JSON.parse(result!.jobs ?? "[]") as [string][]).map(([id]) => id), read };
}

async function jobsRead(client: PoolClient): Promise<number> {
  const { rows } = await client.query(`
    select coalesce(sum(pg_stat_get_xact_tuples_returned(indexrelid)), 0)::int
      + pg_stat_get_xact_tuples_returned('graphile_worker._private_jobs'::regclass)::int as read
    from pg_index where indrelid = 'graphile_worker._private_jobs'::regclass
    group by indrelid`);
  return rows[0].read;
}

async function add(db: TestDatabase, task: string, count: number, queue: string | null = null): Promise<void> {
  await db.query("select graphile_worker.add_job($1, queue_name => $3) from generate_series(1, $2)", [
    task,
    count,
    queue,
  ]);
}

test("a paused task costs a claim nothing, however many of its jobs wait", async () => {
  const db = await freshDatabase();
  await add(db, "paused", many);
  await add(db, "other", 3);
  await db.query("vacuum analyze graphile_worker._private_jobs");
  await db.query("select graphile_worker.pause_work('task', 'paused')");
  const { ids, read } = await claim(db);
  expect(ids).toEqual([1, 2, 3].map((n) => String(many + n)));
  expect(read).toBeLessThan(40);
});

test.each([
  { what: "one queue, ahead of what may run", paused: "'one'", other: "one" },
  { what: "queues of their own", paused: "'queue ' || n", other: "free" },
  { what: "fifty queues, the first of which has what may run", paused: "'queue ' || n % 50", other: "queue 0" },
])("a paused task costs a claim nothing if its jobs wait in $what", async ({ paused, other }) => {
  const db = await freshDatabase();
  const pausedJobs = `select graphile_worker.add_job('paused', queue_name => ${paused}) from generate_series(1, $1) as n`;
  await db.query(pausedJobs, [many]);
  await add(db, "other", 3, other);
  await db.query("select graphile_worker.pause_work('task', 'paused')");
  const { ids, read } = await claim(db);
  expect(ids).toEqual([String(many + 1)]);
  expect(read).toBeLessThan(40);
});

test("a paused queue costs a claim little more than nothing, however many of its jobs wait", async () => {
  const db = await freshDatabase();
  await add(db, "work", many, "paused");
  await add(db, "work", 3, "free");
  await db.query("vacuum analyze graphile_worker._private_jobs");
  await db.query("select graphile_worker.pause_work('queue', 'paused')");
  const { ids, read } = await claim(db);
  expect(ids).toEqual([String(many + 1)]);
  expect(read).toBeLessThan(600);
});

test("with everything or the worker itself paused, no job is read", async () => {
  const db = await freshDatabase();
  await add(db, "work", many);
  await add(db, "work", 100, "queue");
  await db.query("select graphile_worker.pause_work('all')");
  expect(await claim(db)).toEqual({ ids: [], read: 0 });
  await db.query("select graphile_worker.resume_work('all')");
  await db.query("select graphile_worker.pause_work('worker', 'pool')");
  expect(await claim(db)).toEqual({ ids: [], read: 0 });
  await db.query("select graphile_worker.resume_work('worker', 'pool')");
  expect((await claim(db)).ids).toHaveLength(10);
});
