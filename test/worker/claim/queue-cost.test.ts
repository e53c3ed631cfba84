import { expect, onTestFinished, test } from "vitest";
import { clientDatabase } from "../../../src/db/database.ts";
import { claimJobs } from "../../../src/db/statements/claim.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { addCrowdedQueues } from "../kit.ts";

/** Claims once and rolls back; gives the ids that it took, and how many rows it read of jobs and of queues. */
async function claimOnce(
  db: TestDatabase,
  { wanted, perQueue }: { wanted: number; perQueue: number },
): Promise<{ claimed: number[]; jobsRead: number; queuesRead: number }> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  const database = clientDatabase(client, { schema: db.schema, preparedStatements: false });
  const read = async (table: string): Promise<number> => {
    const { rows } = await client.query<{ read: number }>(
      "select (seq_tup_read + idx_tup_fetch)::float8 as read from pg_stat_xact_user_tables where relid = $1::regclass",
      [`graphile_worker.${table}`],
    );
    return rows[0]!.read;
  };
  const tasks = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");

  await client.query("begin");
  const [jobsBefore, queuesBefore] = [await read("_private_jobs"), await read("_private_job_queues")];
  const [result] = await database.run(claimJobs, {
    poolId: "pool",
    workerNames: ["pool"],
    taskIds: tasks.map(({ id }) => id),
    wanted,
    perQueue,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
  });
  const jobsRead = (await read("_private_jobs")) - jobsBefore;
  const queuesRead = (await read("_private_job_queues")) - queuesBefore;
  await client.query("rollback");
  const claimed = (JSON.parse(result!.jobs ?? "[]") as [string][]).map(([id]) => Number(id));
  return { claimed, jobsRead, queuesRead };
}

test.each([
  { queues: 400, perQueue: 100 },
  { queues: 20, perQueue: 100 },
  { queues: 1, perQueue: 1000 },
])(
  "a claim from $queues queues of up to $perQueue jobs each reads little more than it takes",
  async ({ queues, perQueue }) => {
    const db = await freshDatabase();
    await db.query(`
      select graphile_worker.add_job('t', json_build_object('n', n), queue_name => 'queue ' || n % ${queues})
      from generate_series(1, 8000) as n`);
    const { claimed, jobsRead } = await claimOnce(db, { wanted: 400, perQueue });
    expect(claimed).toEqual(Array.from({ length: 400 }, (_, index) => claimed[0]! + index));
    expect(jobsRead).toBeLessThan(6 * 400);
  },
);

test("a claim finds the one due job among thousands of queues, behind hundreds of jobs of a queue that is held, and reads little", async () => {
  const db = await freshDatabase();
  await addCrowdedQueues(db);
  await db.query("select graphile_worker.add_job('t', queue_name => 'customer 4321')");
  const { claimed, jobsRead, queuesRead } = await claimOnce(db, { wanted: 1, perQueue: 1 });
  expect(claimed).toEqual([5601]);
  expect(jobsRead + queuesRead).toBeLessThan(1_200);
});

test.each([
  { stuck: 6000, isPaused: false },
  { stuck: 600, isPaused: true },
])(
  "a claim behind $stuck jobs of one queue does not visit thousands of other queues (paused: $isPaused)",
  async ({ stuck, isPaused }) => {
    const db = await freshDatabase();
    await addCrowdedQueues(db, stuck);
    if (isPaused) await db.query("select graphile_worker.pause_work('queue', 'held')");
    await db.query("analyze graphile_worker._private_job_queues");
    await db.query("select graphile_worker.add_job('t', queue_name => 'customer 4321')");
    const { claimed, jobsRead } = await claimOnce(db, { wanted: 2, perQueue: 1 });
    expect(claimed).toEqual([5001 + stuck]);
    expect(jobsRead).toBeLessThan(stuck + 500);
  },
);
