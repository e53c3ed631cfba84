import { expect, test } from "vitest";
import { migrate } from "../../src/db/migrate.ts";
import { Logger } from "../../src/logger.ts";
import { loadOriginal, type OriginalVersion, originalEntry } from "../compat/original.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { describeSchema } from "../support/describe-schema.ts";
import { originalSchema } from "../support/original-schema.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { applyRustPort } from "../support/rust-port.ts";
import { until } from "../support/wait.ts";

/** Lets ours take over; gives the warnings. */
async function adopt(database: TestDatabase): Promise<string[]> {
  const warnings: string[] = [];
  const logger = new Logger(() => (level, message) => {
    if (level === "warning") warnings.push(message);
  });
  const client = await database.pool.connect();
  try {
    await migrate({ client, schema: database.schema, logger });
  } finally {
    client.release();
  }
  return warnings;
}

function ledger(database: TestDatabase): Promise<Array<{ id: number; breaking: boolean }>> {
  return database.query("select id, breaking from graphile_worker.migrations where id > 17 order by id");
}

/** Jobs in every state, so that something of everything has to come through. */
async function addAllKindsOfJobs(database: TestDatabase): Promise<void> {
  await database.pool.query(`
    select graphile_worker.add_job('later', '{"n":1}', run_at => now() + interval '1 year', priority => -3, max_attempts => 7);
    select graphile_worker.add_job('later', '[1]', job_key => 'kept', run_at => now() + interval '1 year', flags => array['a', 'b']);
    select graphile_worker.add_job('later', job_key => 'kept-too', queue_name => 'slow', run_at => now() + interval '1 year');
    select graphile_worker.add_job('dead', max_attempts => 1, job_key => 'dead');
    update graphile_worker._private_jobs set attempts = 1, last_error = 'gone' where key = 'dead';
    select graphile_worker.add_job('stuck', queue_name => 'held', job_key => 'stuck');
    update graphile_worker._private_jobs set attempts = 1, locked_at = now(), locked_by = 'pool-elsewhere' where key = 'stuck';
    update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-elsewhere' where queue_name = 'held';
    insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)
      values ('nightly', now() - interval '1 day', now() - interval '1 hour'), ('new', now(), null);`);
}

function everything(database: TestDatabase): Promise<unknown> {
  return Promise.all(
    ["_private_jobs", "_private_tasks", "_private_job_queues", "_private_known_crontabs"].map((table) =>
      database.query(`select * from graphile_worker.${table} order by 1`),
    ),
  );
}

/** The text of the public functions, to see who wrote it. */
function bodies(database: TestDatabase): Promise<unknown> {
  return database.query(
    "select proname, md5(prosrc) from pg_proc where pronamespace = 'graphile_worker'::regnamespace order by proname",
  );
}

async function startOriginal(database: TestDatabase, version: OriginalVersion): Promise<TestProcess> {
  const worker = startProcess("original-worker.mjs", [originalEntry(version), database.url]);
  await worker.says(/original is running/);
  return worker;
}

async function expectRuns(database: TestDatabase, worker: TestProcess, name: string): Promise<void> {
  await database.query(
    "select graphile_worker.add_job('greet', json_build_object('name', $1::text), queue_name => 'greetings', job_key => $1)",
    [name],
  );
  await worker.says(new RegExp(`greeted \\{"name" ?: ?"${name}"\\}`));
  await until(async () => (await database.jobs()).every(({ key }) => key !== name), { what: `${name} is completed` });
}

const expectedLedger = {
  // Not breaking, so that workers of 0.16 may be started again beside ours.
  "0.16": [
    { id: 18, breaking: false },
    { id: 19, breaking: false },
    { id: 20, breaking: false },
  ],
  "0.17": [
    { id: 18, breaking: false },
    { id: 19, breaking: true },
    { id: 20, breaking: false },
  ],
  "0.18": [
    { id: 18, breaking: false },
    { id: 19, breaking: true },
    { id: 20, breaking: false },
  ],
};

test.each(["0.16", "0.17", "0.18"] as const)(
  "a schema of Graphile Worker %s is adopted with all that is in it, while its worker goes on working",
  async (version) => {
    const database = await originalSchema(version);
    const worker = await startOriginal(database, version);
    await expectRuns(database, worker, "before");
    await addAllKindsOfJobs(database);
    const before = await everything(database);

    expect(await adopt(database)).toEqual([]);
    expect(await everything(database)).toEqual(before);
    expect(await ledger(database)).toEqual(expectedLedger[version]);
    expect(await describeSchema(database)).toEqual(await describeSchema(await freshDatabase()));

    await expectRuns(database, worker, "after");
    await database.query("select graphile_worker.add_job('stumble', job_key => 'stumbling')");
    await until(async () =>
      (await database.jobs()).some(({ last_error, locked_at }) => last_error === "stumbled" && !locked_at),
    );
    worker.kill("SIGTERM");
    await worker.ended;
    expect(worker.output()).not.toMatch(/breaking/i);

    const ours = await bodies(database);
    const again = await startOriginal(database, version);
    await expectRuns(database, again, "again");
    expect(await bodies(database)).toEqual(ours);
    await expect(database.query("select graphile_worker.add_job('greet', job_key => '')")).rejects.toMatchObject({
      code: "GWBJK",
    });
    await database.query(
      "select graphile_worker.add_job('later', '[2]', job_key => 'kept', run_at => now() + interval '1 year')",
    );
    expect((await database.jobs()).find(({ key }) => key === "kept")).toMatchObject({ payload: [1, 2], revision: 1 });
  },
);

test.each(["0.17", "0.18"] as const)("Graphile Worker %s starts on a schema that we made", async (version) => {
  const database = await freshDatabase();
  const before = [await ledger(database), await bodies(database)];
  const worker = await startOriginal(database, version);
  await expectRuns(database, worker, "guest");
  expect([await ledger(database), await bodies(database)]).toEqual(before);
  // 0.17 does not know id 20 yet, says so, and carries on.
  if (version === "0.18") expect(worker.output()).not.toMatch(/warn|error|revision/i);
});

test.each([19, 20, 21, 22] as const)(
  "a schema of the Rust port at its revision %i is adopted as it is",
  async (revision) => {
    const database = await originalSchema("0.16");
    await applyRustPort(database, revision);
    await addAllKindsOfJobs(database);
    if (revision >= 20) await database.query("select graphile_worker.worker_heartbeat('graphile_worker_1')");
    if (revision >= 22) {
      await database.query(
        "insert into graphile_worker._private_job_retirements select id from graphile_worker._private_jobs where key = 'stuck'",
      );
    }
    const before = await everything(database);

    expect(await adopt(database)).toEqual([]);
    expect(await everything(database)).toEqual(before);
    const ids = (await ledger(database)).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: Math.max(revision, 20) - 17 }, (_, index) => index + 18));
    expect((await ledger(database)).filter(({ breaking }) => breaking)).toEqual([]);

    if (revision >= 20) {
      expect(await database.query("select id from graphile_worker._private_workers")).toEqual([
        { id: "graphile_worker_1" },
      ]);
    }
    if (revision >= 22) {
      expect(await database.query("select id from graphile_worker._private_job_retirements")).toHaveLength(1);
    }
    const [stuck] = (await database.jobs()).filter(({ key }) => key === "stuck");
    await database.query(
      "select graphile_worker.add_job('later', job_key => 'stuck', run_at => now() + interval '1 year')",
    );
    expect(await database.job(stuck!.id)).toMatchObject({ key: null, attempts: 25, locked_by: "pool-elsewhere" });
    expect(await adopt(database)).toEqual([]);
  },
);

test("functions of the Rust port that cannot be replaced in place are dropped first", async () => {
  const database = await originalSchema("0.16");
  await applyRustPort(database, 22);
  await database.pool.query(`
    drop function graphile_worker.worker_deregister(text);
    create function graphile_worker.worker_deregister(other_name text default '') returns void language sql as 'select';
    create function graphile_worker.delete_stale_workers(ids text[]) returns integer language sql as 'select 1';`);
  expect(await adopt(database)).toEqual([]);
  const { functions } = await describeSchema(database);
  expect(functions).toMatchObject({
    "worker_deregister(worker_id text)": "void v",
    "delete_stale_workers(worker_ids text[])": "void v",
  });
});

test.each([
  [1, "0.2"],
  [4, "0.5"],
  [10, "0.13"],
  [14, "0.14 or 0.15"],
  [16, "0.16"],
])("a schema at revision %i is refused with the way out, and left alone", async (revision, release) => {
  const database = await freshDatabase({ migrated: false });
  await database.pool.query(`
    create schema graphile_worker;
    create table graphile_worker.migrations (id int primary key, ts timestamptz not null default now());
    create table graphile_worker.jobs (id int);
    insert into graphile_worker.migrations (id) select generate_series(1, ${revision});`);
  // The column came with 0.14.
  if (revision > 10)
    await database.pool.query(
      "alter table graphile_worker.migrations add column breaking boolean not null default false",
    );
  const failure = await adopt(database).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "SCHEMA_TOO_OLD" });
  expect((failure as Error).message).toContain(`revision ${revision} (Graphile Worker ${release}`);
  expect((failure as Error).message).toContain("graphile-worker@0.16.6");
  expect(
    await database.query(
      "select relname from pg_class where relnamespace = 'graphile_worker'::regnamespace and relkind = 'r' order by 1",
    ),
  ).toEqual([{ relname: "jobs" }, { relname: "migrations" }]);
});

test("a schema of Graphile Worker 0.13 comes through 0.16, as its error advises", async () => {
  const database = await originalSchema("0.13");
  await database.query("select graphile_worker.add_job('later', '[1]', job_key => 'k', queue_name => 'q')");
  await expect(adopt(database)).rejects.toThrow(
    "The schema is at revision 10 (Graphile Worker 0.13); it can be adopted from revision 18 on. " +
      "Stop its workers, run this once with DATABASE_URL set to the database, and try again: " +
      "npx graphile-worker@0.16.6 --schema-only",
  );
  await (await loadOriginal("0.16")).runMigrations({ connectionString: database.url });
  await adopt(database);
  await database.query("select graphile_worker.add_job('later', '[2]', job_key => 'k', queue_name => 'q')");
  expect(await database.jobs()).toMatchObject([{ payload: [1, 2], key: "k", queue_name: "q", revision: 1 }]);
});

test("ours waits for an original that is installing its schema at the same moment, and then adopts it", async () => {
  const { runMigrations } = await loadOriginal("0.18");
  for (const soFar of [0, 1, 7, 15]) {
    const database = await freshDatabase({ migrated: false });
    const theirs = runMigrations({ connectionString: database.url });
    await until(() => hasReached(database, soFar), { what: `the original has reached ${soFar}` });
    await Promise.all([adopt(database), theirs]);
    await database.query("select graphile_worker.add_job('later')");
    expect(await database.query("select id from graphile_worker._hathi_migrations where id = 1")).toHaveLength(1);
  }
}, 120_000);

async function hasReached(database: TestDatabase, id: number): Promise<boolean> {
  if (id === 0) return true;
  return database.query("select from graphile_worker.migrations where id >= $1", [id]).then(
    (rows) => rows.length > 0,
    () => false,
  );
}

test("a newer schema with a breaking change is refused, and the process ends with 57", async () => {
  const database = await freshDatabase();
  await database.query("insert into graphile_worker.migrations (id, breaking) values (21, true)");
  const process = startProcess("migrate-process.mjs", [builtLibrary(), database.url, database.schema]);
  await process.says(/ready/);
  process.send("go");
  expect(await process.ended).toBe(57);
  expect(process.output()).toMatch(/SCHEMA_TOO_NEW: .*revision 21 .*up to revision 20/);
}, 120_000);

test("a newer schema that we have never been on is refused before anything is written", async () => {
  const database = await originalSchema("0.18");
  await database.query("insert into graphile_worker.migrations (id, breaking) values (21, true)");
  const process = startProcess("migrate-process.mjs", [builtLibrary(), database.url, database.schema]);
  await process.says(/ready/);
  process.send("go");
  expect(await process.ended).toBe(57);
  expect(await database.query("select to_regclass('graphile_worker._hathi_migrations') as ledger")).toEqual([
    { ledger: null },
  ]);
});

test("a newer schema without a breaking change is a warning", async () => {
  const database = await freshDatabase();
  await database.query("insert into graphile_worker.migrations (id, breaking) values (21, false)");
  expect(await adopt(database)).toEqual([expect.stringMatching(/revision 21;.*up to 20\./)]);
});

test("a newer version of ours that was here before is a warning", async () => {
  const database = await freshDatabase();
  await database.query("insert into graphile_worker._hathi_migrations (id, name) values (999999, 'from-the-future')");
  expect(await adopt(database)).toEqual([expect.stringContaining("999999")]);
});

test("half a schema is refused with what is missing", async () => {
  const database = await originalSchema("0.18");
  await database.query("drop view graphile_worker.jobs");
  await expect(adopt(database)).rejects.toThrow(/ledger is at revision 20, but jobs is missing/);
});
