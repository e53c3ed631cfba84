import pg from "pg";
import { expect, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { takeClient } from "../../src/db/pooled-client.ts";
import { statement } from "../../src/db/statement.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

const write = statement<string, never>({
  name: "write",
  values: (note) => [note],
  text: "insert into notes (note) values ($1)",
});

/** As before pg 8.23, which does not tell the state of its transaction. */
class OldClient extends pg.Client {}
Object.defineProperty(OldClient.prototype, "getTransactionStatus", { value: undefined });

async function notes(db: TestDatabase): Promise<unknown[]> {
  return (await db.query("select note from notes order by note")).map(({ note }) => note);
}

const kinds: [string, pg.PoolConfig][] = [
  ["pg", {}],
  ["an older pg", { Client: OldClient as unknown as new () => pg.ClientBase }],
];

test.each(kinds)(
  "nothing of ours is written on a connection that was released inside a transaction (%s)",
  async (_, config) => {
    const db = await freshDatabase();
    await db.query("create table notes (note text)");
    const pool = testPool(db.url, 1, config);
    const warnings: (string | undefined)[] = [];
    const database = poolDatabase(pool, {
      schema: db.schema,
      preparedStatements: true,
      onOpenTransaction: (task) => void warnings.push(task),
    });

    // By way of the pool itself, which we do not see.
    await pool.query("begin");
    await database.run(write, "after begin");
    // Without waiting for the answer.
    const client = await pool.connect();
    const begun = client.query("begin");
    client.release();
    await database.run(write, "after a begin that was under way");
    await begun;
    // By way of ours, well and with an error.
    await database.withPgClient((lent) => lent.query("begin"));
    await database.run(write, "after withPgClient");
    const failing = database.lendTo("my_task")(async (lent) => {
      await lent.query("begin");
      throw new Error("oh");
    });
    await expect(failing).rejects.toThrow("oh");
    await database.run(write, "after an error");
    await database.lendTo("my_task")(async (lent) => void lent.query("begin"));
    await database.run(write, "after a query that was not awaited");

    expect(await notes(db)).toEqual([
      "after a begin that was under way",
      "after a query that was not awaited",
      "after an error",
      "after begin",
      "after withPgClient",
    ]);
    expect(warnings).toEqual([undefined, undefined, undefined, "my_task", "my_task"]);
  },
);

test("a connection that was released in order is used again", async () => {
  const db = await freshDatabase();
  const pool = testPool(db.url, 1, { Client: OldClient as unknown as new () => pg.ClientBase });
  const database = poolDatabase(pool, {
    schema: db.schema,
    preparedStatements: true,
    onOpenTransaction: () => expect.unreachable("no transaction was left open"),
  });
  const pid = (client: pg.PoolClient): Promise<unknown> =>
    client.query("select pg_backend_pid()").then(({ rows }) => rows);
  const first = await database.withPgClient(async (client) => {
    await client.query("begin");
    const rows = await pid(client);
    await client.query("rollback");
    return rows;
  });
  await expect(database.withPgClient((client) => client.query("no sql"))).rejects.toThrow("syntax error");
  expect(await database.withPgClient(pid)).toEqual(first);
  const client = await takeClient(pool, () => expect.unreachable());
  expect(await pid(client)).toEqual(first);
  client.release();
});

test("a task that leaves a transaction open costs its connection and one warning, and its jobs are settled", async () => {
  const db = await freshDatabase();
  await db.query("create table notes (note text)");
  await db.query("select graphile_worker.add_job(name) from unnest('{lent,query,own,lent,query,own}'::text[]) as name");
  const pgPool = testPool(db.url, 2);
  const { completed, lines, runner, of } = await startWorker(
    db,
    {
      lent: (_payload, { withPgClient }) =>
        withPgClient(async (client) => {
          await client.query("begin");
          await client.query("insert into notes values ('rolled back')");
        }),
      query: async (_payload, { query }) => void (await query("begin")),
      own: async () => {
        const client = await pgPool.connect();
        await client.query("begin");
        client.release();
      },
    },
    { pgPool, concurrency: 1 },
  );
  await completed(6);
  await runner.stop();
  expect(of("job:error")).toEqual([]);
  expect(await db.jobs()).toEqual([]);
  expect(await notes(db)).toEqual([]);
  const warnings = lines.filter(({ message }) => message.includes("open transaction"));
  expect(
    warnings
      .filter(({ level }) => level === "warning")
      .map(({ message }) => message.split(":")[0])
      .sort(),
  ).toEqual([
    "A pooled connection was released with an open transaction",
    "Task 'lent' left an open transaction",
    "Task 'query' left an open transaction",
  ]);
  await until(async () => {
    const open = await db.query(
      "select from pg_stat_activity where state like 'idle in transaction%' and datname = current_database()",
    );
    return open.length === 0;
  });
});
