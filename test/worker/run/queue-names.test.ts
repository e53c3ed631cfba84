import { expect, test } from "vitest";
import { poolDatabase } from "../../../src/db/database.ts";
import { QueueNames } from "../../../src/worker/run/queue-names.ts";
import { freshDatabase } from "../../support/database.ts";

test("names of queues are remembered up to a limit, and looked up again beyond it", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'queue ' || n) from generate_series(1, 20) as n");
  const rows = await db.query<{ id: number; queue_name: string }>(
    "select id, queue_name from graphile_worker._private_job_queues",
  );
  const names = new QueueNames(poolDatabase(db.pool, { schema: db.schema, preparedStatements: true }), 0, 5);
  for (let round = 0; round < 2; round++) {
    const found = await Promise.all(rows.map(async ({ id }) => ({ id, queue_name: await names.get(id) })));
    expect(found).toEqual(rows);
    expect(names.size).toBe(5);
  }
  await expect(names.get(999)).rejects.toThrow("Queue with id '999' not found");
});
