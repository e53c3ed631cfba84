import pg from "pg";
import { expect, test } from "vitest";
import type { CallerTransaction } from "../../../src/caller-transaction.ts";
import { executorFor } from "../../../src/client/transaction/executor-for.ts";
import { statement } from "../../../src/db/statement.ts";
import { ConfigError } from "../../../src/errors.ts";
import { freshDatabase, testPool } from "../../support/database.ts";

const addJob = statement<{ task: string }, { id: string; run_at: Date }>({
  name: "add_job_in_test",
  text: "select job.id::text as id, job.run_at from graphile_worker.add_job($1::text) as job",
  values: ({ task }) => [task],
});

test("any other library can be used through a function that queries on its transaction", async () => {
  const db = await freshDatabase();
  const client = await testPool(db.url, 1).connect();
  await client.query("begin");
  const asked: string[] = [];
  const executor = executorFor(async (text, values) => {
    asked.push(text);
    return (await client.query(text, values)).rows;
  }, "graphile_worker");

  const [job] = await executor.run(addJob, { task: "greet" });
  await client.query("commit");
  client.release();

  expect(asked).toHaveLength(1);
  expect(await db.job(job!.id)).toMatchObject({ task_identifier: "greet", run_at: job!.run_at });
});

test("a statement that fails does not hold up the next one", async () => {
  const db = await freshDatabase();
  const client = await testPool(db.url, 1).connect();
  await client.query("begin; savepoint before_mistake");
  const executor = executorFor(client, "graphile_worker");

  await expect(executor.run(addJob, { task: "x".repeat(129) })).rejects.toMatchObject({ code: "GWBID" });
  await client.query("rollback to before_mistake");
  await executor.run(addJob, { task: "greet" });
  await client.query("commit");
  client.release();

  expect(await db.jobs()).toMatchObject([{ task_identifier: "greet" }]);
});

test("parsers that the user has registered with pg change nothing", async () => {
  const db = await freshDatabase();
  const types = new pg.TypeOverrides();
  for (const type of [pg.types.builtins.INT8, pg.types.builtins.TIMESTAMPTZ, pg.types.builtins.JSON]) {
    types.setTypeParser(type, () => "parsed by the user");
  }
  const client = new pg.Client({ connectionString: db.url, types });
  await client.connect();

  const [job] = await executorFor(client, "graphile_worker").run(addJob, { task: "greet" });
  await client.end();

  expect(await db.job(job!.id)).toMatchObject({ id: job!.id, run_at: job!.run_at });
});

test("a pool is refused, because it is not a transaction", async () => {
  const db = await freshDatabase();
  // @ts-expect-error -- a Pool is not a CallerTransaction for the compiler either
  const refused = (): unknown => executorFor(db.pool, "graphile_worker");

  expect(refused).toThrow(ConfigError);
  expect(refused).toThrow(/given a pg Pool, which is not a transaction: .*pool\.connect\(\)/);
});

test.each([
  [undefined, "undefined"],
  [null, "null"],
  ["begin", "a string"],
  [7, "7"],
  [{}, "an object of type 'Object'"],
  [Object.create(null), "an object of type 'null prototype'"],
  [new Map(), "an object of type 'Map'"],
])("what is no transaction at all is refused with a list of what is taken: %o", (thing, description) => {
  const refused = (): unknown => executorFor(thing as CallerTransaction, "graphile_worker");

  expect(refused).toThrow(ConfigError);
  expect(refused).toThrow(
    `does not know what to do with ${description}. It takes a client of pg, a transaction of Drizzle`,
  );
});

test("a function that does not give rows is told so", async () => {
  const executor = executorFor((async () => 1) as never, "graphile_worker");

  await expect(executor.run(addJob, { task: "greet" })).rejects.toThrow("answered with 1; expected rows");
});
