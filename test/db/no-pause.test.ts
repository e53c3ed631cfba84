import type { PoolClient } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { describeMigration, migrate } from "../../src/db/migrate.ts";
import { shippedMigrations } from "../../src/db/plan-migration.ts";
import { splitIndexes } from "../../src/db/split-indexes.ts";
import { originalEntry } from "../compat/original.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { describeSchema } from "../support/describe-schema.ts";
import { rememberingLogger } from "../support/log.ts";
import { originalSchema } from "../support/original-schema.ts";
import { startProcess } from "../support/process.ts";
import { applyRustPort } from "../support/rust-port.ts";
import { until } from "../support/wait.ts";

// Adopting a schema while others use it. "Waits no more than a second" is a `lock_timeout` of the producer: PostgreSQL itself ends
// an add that waits longer for a lock.
vi.setConfig({ testTimeout: 120_000 });

interface Adoption {
  readonly ended: Promise<void>;
  readonly pid: number;
  /** Waits until a line of the log matches. */
  says(pattern: RegExp): Promise<string>;
}

async function startAdoption(database: TestDatabase, url = database.url): Promise<Adoption> {
  const { logger, lines } = rememberingLogger();
  const pool = testPool(url, 2);
  const client = await pool.connect();
  client.on("error", () => undefined);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const connect = async (callback: (client: PoolClient) => Promise<void>): Promise<void> => {
    const second = await pool.connect();
    await callback(second).finally(() => second.release());
  };
  const ended = migrate({ client, schema: database.schema, logger, connect }).finally(() => client.release(true));
  ended.catch(() => undefined);
  const find = (pattern: RegExp): string | undefined => lines.find(({ message }) => pattern.test(message))?.message;
  return {
    ended,
    pid: rows[0]!.pid,
    says: (pattern) => until(() => find(pattern), { what: `the migration says ${pattern}`, withinMs: 60_000 }),
  };
}

/** An application that has added a job and does not end its transaction. */
async function leaveOpen(database: TestDatabase): Promise<{ pid: number; end(): Promise<void> }> {
  const client = await testPool(database.url, 1, { application_name: "shop" }).connect();
  onTestFinished(() => client.release(true));
  const add = "select graphile_worker.add_job('later', run_at => now() + interval '1 year')";
  await client.query(add); // or others would wait for its new task
  await client.query("begin");
  await client.query(add);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { pid: rows[0]!.pid, end: async () => void (await client.query("commit")) };
}

/** Adds jobs; an add that waits more than a second for a lock fails. */
function impatientProducer(database: TestDatabase): (text?: string, values?: unknown[]) => Promise<unknown> {
  const pool = testPool(database.url, 1, { options: "-c lock_timeout=1s" });
  return (text = "select graphile_worker.add_job('later', run_at => now() + interval '1 year')", values = []) =>
    pool.query(text, values);
}

async function expectAdopted(database: TestDatabase): Promise<void> {
  expect(await describeSchema(database)).toEqual(await describeSchema(await freshDatabase()));
  expect(await database.query("select id, name from graphile_worker._hathi_migrations order by id")).toEqual(
    shippedMigrations().map(({ id, name }) => ({ id, name })),
  );
  expect(await invalidIndexes(database)).toEqual([]);
}

function invalidIndexes(database: TestDatabase): Promise<Array<{ name: string }>> {
  return database.query("select indexrelid::regclass::text as name from pg_index where not indisvalid");
}

const waits = /^Index _hathi_\w+ waits for the end of other transactions: /;

test("while an application leaves a transaction open, jobs are added and an original claims them", async () => {
  const database = await originalSchema("0.18");
  const worker = startProcess("original-worker.mjs", [originalEntry("0.18"), database.url]);
  await worker.says(/original is running/);
  const application = await leaveOpen(database);
  const add = impatientProducer(database);

  const adoption = await startAdoption(database);
  expect(await adoption.says(waits)).toMatch(
    new RegExp(
      `process ${application.pid} \\(application 'shop'; role '.*'; idle in transaction, in a transaction for`,
    ),
  );
  await add(`select graphile_worker.add_job('greet', '{"name":"meanwhile"}')`);
  await worker.says(/greeted \{"name" ?: ?"meanwhile"\}/);
  await application.end();
  await adoption.ended;
  await expectAdopted(database);
});

test("with 1,000,000 rows neither an add nor a claim waits a second for a lock", async () => {
  const database = await originalSchema("0.18");
  await database.query("select graphile_worker.add_job('later')");
  await database.query(`
    insert into graphile_worker._private_jobs (task_id, run_at)
    select task.id, now() + interval '1 year' from graphile_worker._private_tasks as task, generate_series(1, 1000000)`);
  const counts = { adds: 0, claims: 0 };
  let isOver = false;
  const repeat = async (count: keyof typeof counts, text: string): Promise<void> => {
    for (const add = impatientProducer(database); !isOver; counts[count]++) await add(text);
  };
  const adoption = await startAdoption(database);
  const others = [
    repeat("adds", "select graphile_worker.add_job('soon')"),
    repeat(
      "claims",
      `update graphile_worker._private_jobs set attempts = attempts + 1, locked_by = 'original', locked_at = now()
       where id = (
         select id from graphile_worker._private_jobs where is_available and run_at <= now()
         order by priority, run_at limit 1 for update skip locked)`,
    ),
  ];
  const all = Promise.all(others);
  await Promise.race([adoption.ended, all]); // whoever fails first says why
  isOver = true;
  await all;
  expect(counts.adds).toBeGreaterThan(10);
  expect(counts.claims).toBeGreaterThan(10);
  await expectAdopted(database);
}, 300_000);

test("a lock that others must wait behind is asked for briefly, again and again, and the log says who holds it", async () => {
  const database = await originalSchema("0.16");
  // Its table of retirements refers to the jobs; to drop that constraint takes the strongest lock on them.
  await applyRustPort(database, 22);
  const application = await leaveOpen(database);
  const add = impatientProducer(database);
  const adoption = await startAdoption(database);
  expect(await adoption.says(/^Waiting for locks: migration 000002/)).toContain(
    `process ${application.pid} (application 'shop'; role `,
  );
  for (let n = 0; n < 50; n++) await add();
  await application.end();
  await adoption.ended;
  expect(
    await database.query(
      "select from pg_constraint where conrelid = 'graphile_worker._private_jobs'::regclass and contype = 'f'",
    ),
  ).toEqual([]);
  expect(await database.jobs()).toHaveLength(52);
});

test("after a crash in the middle the next migration goes on, and builds the index again that was left invalid", async () => {
  const database = await originalSchema("0.17");
  const application = await leaveOpen(database);
  const crashed = await startAdoption(database);
  await crashed.says(waits);
  await database.query("select pg_terminate_backend($1)", [crashed.pid]);
  await expect(crashed.ended).rejects.toThrow();
  await application.end();
  expect(await invalidIndexes(database)).toHaveLength(1);
  const done = await database.query("select id from graphile_worker._hathi_migrations");
  expect(done.length).toBeGreaterThan(0);
  expect(done.length).toBeLessThan(shippedMigrations().length);

  const next = await startAdoption(database);
  await next.ended;
  expect(await next.says(/left invalid/)).toContain("_hathi_jobs_");
  await expectAdopted(database);
});

test("an index that another process is building is waited for, not dropped", async () => {
  const database = await originalSchema("0.18");
  const application = await leaveOpen(database);
  const first = await startAdoption(database);
  await first.says(waits);
  const second = await startAdoption(database);
  expect(await second.says(/^Waiting for index _hathi_/)).toContain(`process ${first.pid} is building`);
  const third = await startAdoption(database);
  await third.says(/^Waiting for index _hathi_/);
  await application.end();
  await Promise.all([first.ended, second.ended, third.ended]);
  await expectAdopted(database);
});

test("eight processes that adopt a schema with rows at the same moment all succeed", async () => {
  const database = await originalSchema("0.18");
  await database.query("select graphile_worker.add_job('later') from generate_series(1, 2000)");
  const library = builtLibrary();
  const processes = Array.from({ length: 8 }, () =>
    startProcess("migrate-process.mjs", [library, database.url, database.schema]),
  );
  await Promise.all(processes.map((process) => process.says(/ready/)));
  for (const process of processes) process.send("go");
  await Promise.all(processes.map(({ ended }) => ended));
  expect(processes.map((process) => process.output())).toEqual(processes.map(() => "ready\nmigrated\n"));
  await expectAdopted(database);
});

test("timeouts of the role do not end the building of an index, and are as before afterwards", async () => {
  const database = await originalSchema("0.18");
  await database.query(`alter database ${database.name} set lock_timeout = 50`);
  await database.query(`alter database ${database.name} set statement_timeout = 400`);
  const application = await leaveOpen(database);
  const isKnown = await database.query("select from pg_settings where name = 'transaction_timeout'"); // from PostgreSQL 17 on
  if (isKnown.length > 0) await database.query(`alter database ${database.name} set transaction_timeout = 900`);
  const client = await testPool(database.url, 1).connect();
  onTestFinished(() => client.release());
  const waiting = migrate({ client, schema: database.schema });
  const isWaiting = `select from pg_stat_activity where query like 'create index concurrently%' and state = 'active'
    and query_start < now() - interval '1 second' and datname = current_database()`;
  await until(async () => (await database.query(isWaiting)).length > 0, { what: "the build outlasts all timeouts" });
  await application.end();
  await waiting;
  const { rows } = await client.query(
    "select current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement",
  );
  expect(rows).toEqual([{ lock: "50ms", statement: "400ms" }]);
  await expectAdopted(database);
});

test("a dry run on a schema with rows gives a script that adopts it, with the indexes outside of transactions", async () => {
  const database = await originalSchema("0.18");
  const client = await database.pool.connect();
  const script = await describeMigration({ client, schema: database.schema }).finally(() => client.release());
  // As psql does: one statement, or one transaction, after the other.
  const parts = script.split(/^(?=begin;$|create index concurrently)/m);
  expect(parts.filter((part) => part.startsWith("create index concurrently")).length).toBeGreaterThan(0);
  for (const part of parts) await database.pool.query(part);
  await expectAdopted(database);
});

test.each(shippedMigrations().map(({ name, text }) => [name, text] as const))(
  "every index of migration %s can be built on its own",
  (_name, text) => {
    const withoutBodies = text.replace(/\$hathi\$.*?\$hathi\$/gs, "").replace(/--.*/g, "");
    const { rest, indexes } = splitIndexes(withoutBodies, () => true);
    expect(rest).not.toMatch(/create\s+(unique\s+)?index/i);
    expect(indexes).toHaveLength([...withoutBodies.matchAll(/create\s+(unique\s+)?index/gi)].length);
    expect(splitIndexes(withoutBodies, () => false)).toEqual({ rest: withoutBodies, indexes: [] });
  },
);
