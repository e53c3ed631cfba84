import { readdirSync } from "node:fs";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import type { Statement } from "../../src/db/statement.ts";
import { claimJobs } from "../../src/db/statements/claim.ts";
import { freshDatabase, testPool } from "../support/database.ts";

/*
 * `skip locked` does not wait for a locked row, with one exception that no test can force: the transaction that was changing the row
 * commits between two steps of the lock, and another one has changed the new version. So whoever uses it gives up after a tenth of
 * a second, before PostgreSQL would look for a deadlock and end an application's transaction, and is sent again.
 */

/** They lock one row of their own, or run inside a heartbeat, whose connection has a lock timeout already. */
const exempt = ["_hathi_read_rollup", "_hathi_record_times", "_hathi_tend_parked"];

test("every function that uses `skip locked` gives up a lock before a deadlock is looked for", async () => {
  const db = await freshDatabase();
  const patient = await db.query<{ name: string }>(`
    select proname as name
    from pg_proc
    where pronamespace = 'graphile_worker'::regnamespace
      and prosrc like '%skip locked%'
      and not coalesce(proconfig @> '{lock_timeout=100ms}', false)
    order by 1`);
  expect(patient.map(({ name }) => name)).toEqual(exempt);
});

test("every statement that calls such a function is sent again after a lock timeout", async () => {
  const db = await freshDatabase();
  const names = await db.query<{ name: string }>(`
    select proname as name from pg_proc
    where pronamespace = 'graphile_worker'::regnamespace and proconfig @> '{lock_timeout=100ms}'`);
  const folder = new URL("../../src/db/statements/", import.meta.url);
  const modules = await Promise.all(readdirSync(folder).map((file) => import(new URL(file, folder).href)));
  const statements = modules
    .flatMap((module) => Object.values(module))
    .filter((value): value is Statement<never, never> => typeof (value as { text?: unknown }).text === "string");
  const callers = statements.filter(({ text }) => names.some(({ name }) => text.includes(`.${name}(`)));
  expect(callers.length).toBeGreaterThan(15);
  // The sweep is a transaction of several statements, and is made again as a whole.
  const impatient = callers.filter(({ givesWay }) => !givesWay).map(({ name }) => name);
  expect(impatient.sort()).toEqual(["end_cancelled", "find_dead_workers", "recover_jobs"]);
});

test("a claim that gave up a lock is made again", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t')");
  const [task] = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");
  const pool = testPool(db.url, 1);
  const database = poolDatabase(pool, { schema: db.schema, preparedStatements: true });
  const application = new pg.Client({ connectionString: db.url });
  await application.connect();
  onTestFinished(() => application.end());
  await application.query("begin; lock table graphile_worker._private_jobs in access exclusive mode");
  let tries = 0;
  pool.on("acquire", () => {
    if (++tries === 2) void application.query("commit");
  });
  const [row] = await database.run(claimJobs, {
    poolId: "pool",
    workerNames: [],
    taskIds: [task!.id],
    wanted: 1,
    perQueue: 1,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
  });
  expect(JSON.parse(row!.jobs!)).toHaveLength(1);
  expect(tries).toBeGreaterThan(1);
});
