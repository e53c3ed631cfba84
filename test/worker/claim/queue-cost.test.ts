import { expect, onTestFinished, test } from "vitest";
import { clientDatabase } from "../../../src/db/database.ts";
import { claimJobs } from "../../../src/db/statements/claim.ts";
import { freshDatabase } from "../../support/database.ts";

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
    const client = await db.pool.connect();
    onTestFinished(() => client.release(true));
    const database = clientDatabase(client, { schema: db.schema, preparedStatements: false });
    const read = async (): Promise<number> => {
      const { rows } = await client.query<{ read: number }>(`
        select (seq_tup_read + idx_tup_fetch)::float8 as read from pg_stat_xact_user_tables
        where relid = 'graphile_worker._private_jobs'::regclass`);
      return rows[0]!.read;
    };
    const tasks = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");

    await client.query("begin");
    const before = await read();
    const [result] = await database.run(claimJobs, {
      poolId: "pool",
      workerNames: ["pool"],
      taskIds: tasks.map(({ id }) => id),
      wanted: 400,
      perQueue,
      forbidden: null,
      accepted: null,
      clock: null,
      marks: [],
      withQueues: true,
      relaxed: true,
    });
    const cost = (await read()) - before;
    await client.query("rollback");

    const claimed = (JSON.parse(result!.jobs!) as [string][]).map(([id]) => Number(id));
    expect(claimed).toEqual(Array.from({ length: 400 }, (_, index) => claimed[0]! + index));
    expect(cost).toBeLessThan(6 * 400);
  },
);
