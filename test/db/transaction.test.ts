import { expect, onTestFinished, test } from "vitest";
import { clientDatabase, poolDatabase } from "../../src/db/database.ts";
import { statement } from "../../src/db/statement.ts";
import { freshDatabase } from "../support/database.ts";

const addOne = statement<string, { id: string }>({
  name: "add_one",
  values: (task) => [task],
  text: "select (graphile_worker.add_job($1)).id",
});

const isolation = statement<null, { level: string; read_only: string }>({
  name: "isolation",
  values: () => [],
  text: "select current_setting('transaction_isolation') as level, current_setting('transaction_read_only') as read_only",
});

test("a transaction commits what its work did, and rolls back when the work fails or is only tried", async () => {
  const db = await freshDatabase();
  const left: unknown[] = [];
  const database = poolDatabase(db.pool, {
    schema: db.schema,
    preparedStatements: true,
    onOpenTransaction: (task) => left.push(task),
  });
  const tasks = async (): Promise<string[]> =>
    (await db.query<{ task: string }>("select task_identifier as task from graphile_worker.jobs order by id")).map(
      ({ task }) => task,
    );

  await database.transaction((tx) => tx.run(addOne, "kept"));
  expect(await tasks()).toEqual(["kept"]);

  const failing = database.transaction(async (tx) => {
    await tx.run(addOne, "failed");
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  await database.transaction((tx) => tx.run(addOne, "tried"), { dryRun: true });
  expect(await tasks()).toEqual(["kept"]);
  expect(left).toEqual([]);
});

test("a transaction reads what others commit and writes, whatever the role's defaults are", async () => {
  const db = await freshDatabase();
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  await client.query("set default_transaction_isolation = 'serializable'; set default_transaction_read_only = on");
  const database = clientDatabase(client, { schema: db.schema, preparedStatements: false });
  const [row] = await database.transaction((tx) => tx.run(isolation, null));
  expect(row).toEqual({ level: "read committed", read_only: "off" });
});
