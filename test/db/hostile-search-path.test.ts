import type { PoolClient } from "pg";
import { expect, test, vi } from "vitest";
import { describeMigration, migrate } from "../../src/db/migrate.ts";
import { forSchema } from "../../src/db/statement.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { asRole, copyEverything, makeAttacker } from "../support/hostile-path.ts";

vi.setConfig({ testTimeout: 180_000 });

const schemas = ["graphile_worker", 'odd "name" $&'];

interface FunctionRow {
  readonly name: string;
  readonly types: string[];
  /** How many arguments at the end may be left out. */
  readonly defaults: number;
  readonly is_trigger: boolean;
  readonly settings: string[] | null;
  /** Its names were bound when it was made. */
  readonly is_bound: boolean;
}

async function listFunctions(database: TestDatabase): Promise<FunctionRow[]> {
  return database.query<FunctionRow>(
    `select proname as name, array(select format_type(type, null) from unnest(proargtypes) with ordinality as argument (type, nth)
        order by nth) as types, pronargdefaults as defaults, prorettype = 'trigger'::regtype as is_trigger,
      proconfig as settings, prosqlbody is not null as is_bound
    from pg_proc where pronamespace = (select oid from pg_namespace where nspname = $1) order by proname`,
    [database.schema],
  );
}

/** Values that fit what `fill` writes: '1' is a task, a queue, a key, a worker, a flag and a payload at once. */
const valuesByType: Record<string, readonly string[]> = {
  text: ["'1'::text", "null::text"],
  "text[]": ["array['1']::text[]", "array[]::text[]"],
  integer: ["1::integer", "null::integer"],
  "integer[]": ["array[1]::integer[]", "null::integer[]"],
  smallint: ["1::smallint"],
  "smallint[]": ["array[1]::smallint[]", "null::smallint[]"],
  bigint: ["1::bigint"],
  xid8: ["'3'::pg_catalog.xid8", "null::pg_catalog.xid8"],
  "xid8[]": ["array['3'::pg_catalog.xid8]", "array[]::pg_catalog.xid8[]"],
  "bigint[]": ["(select pg_catalog.array_agg(id) from graphile_worker._private_jobs)", "array[]::bigint[]"],
  boolean: ["true", "false"],
  json: ["'[1]'::json", "null::json"],
  jsonb: ["'[1]'::jsonb"],
  interval: ["interval '1 hour'", "interval '0'"],
  "double precision": ["1::double precision"],
  "double precision[]": ["array[1]::double precision[]", "null::double precision[]"],
  "timestamp with time zone": ["'2030-01-01T00:00:00Z'::timestamptz", "null::timestamptz"],
  "timestamp with time zone[]": ["array['2030-01-01T00:00:00Z']::timestamptz[]", "null::timestamptz[]"],
  date: ["'2030-01-01'::date"],
  "boolean[]": ["array[true]::boolean[]"],
  "tid[]": ["array['(0,1)']::tid[]"],
};
const jobTimes =
  "array[row('minute', '2030-01-01T00:00:00Z', '1', array[1], array[1], 1, 1, 1)::graphile_worker._hathi_job_times]";
const jobSpec = "row('1', '[1]', '1', null, null, %, null, array['1'])::graphile_worker.job_spec";

const guardedSpec =
  "row('1', '[1]', '1', null, null, null, null, array['1'], null, 'debounce', '1', '1 s', '2 s', null)::graphile_worker._hathi_guarded_spec";

/** Calls of any function, known or new, by the types of its arguments. */
function callsOf({ name, types, defaults }: FunctionRow): string[] {
  const call = (args: string[]): string => `select * from graphile_worker.${name}(${args.join(", ")})`;
  const value = (type: string, nth: number): string => {
    if (type.endsWith("job_spec[]")) return `array[${jobSpec.replace("%", nth === 0 ? "'new'" : "null")}]`;
    if (type.includes("_hathi_guarded_spec")) return type.endsWith("[]") ? `array[${guardedSpec}]` : guardedSpec;
    if (type.endsWith("_private_jobs[]"))
      return "(select pg_catalog.array_agg(job) from graphile_worker._private_jobs as job)";
    if (type.endsWith("_hathi_job_times[]")) return jobTimes;
    const values = valuesByType[type];
    if (!values) throw new Error(`Give a value of type '${type}' to attack '${name}' with.`);
    return values[nth % values.length]!;
  };
  const all = [0, 1].map((nth) => call(types.map((type) => value(type, nth))));
  return [...all, call(types.slice(0, types.length - defaults).map((type) => value(type, 0))), ...(known[name] ?? [])];
}

/** Settles the running job of a worker, and releases its queue. */
function settleOf(name: string, between: string, after = ""): string {
  const running = "array(select id from graphile_worker._private_jobs where key operator(pg_catalog.=) 'running')";
  const queues = "array(select id from graphile_worker._private_job_queues)";
  return `select * from graphile_worker.${name}('dead', ${running}, ${between}${queues}, ${running}${after})`;
}

/** Ways through a function that values by type do not find. */
const known: Record<string, readonly string[]> = {
  add_job: ["replace", "preserve_run_at", "unsafe_dedupe"].flatMap((mode) =>
    ["1", "running", "new"].map(
      (key) =>
        `select * from graphile_worker.add_job('1', '[1]', queue_name => '1', job_key => '${key}', job_key_mode => '${mode}',
          flags => array['a', 'b'])`,
    ),
  ),
  add_jobs: [
    `select * from graphile_worker.add_jobs(array[${["'1'", "'running'", "'new'", "null"]
      .map((key) => jobSpec.replace("%", key))
      .join(", ")}])`,
  ],
  remove_job: ["select * from graphile_worker.remove_job('running')"],
  _hathi_add_guarded: ["throttle", "singleton"].flatMap((kind) =>
    ["skip", "replace", "cancelRunning"].map(
      (mode) =>
        `select * from graphile_worker._hathi_add_guarded(array[row('1', '[1]', null, null, null, null, null, null, null, '${kind}',
          '1', '1 s', null, '${mode}'), row('1', '[1]', null, null, null, 'running', null, null, 'replace', null, null, null, null,
          null)]::graphile_worker._hathi_guarded_spec[], null)`,
    ),
  ),
  add_singleton_job: ["select * from graphile_worker.add_singleton_job('1', '[1]', '1', 'replace')"],
  _hathi_free_keys: ["select graphile_worker._hathi_free_keys(array['running', '1'])"],
  _hathi_queue_id: ["select graphile_worker._hathi_queue_id('new')"],
  _hathi_task_id: ["select graphile_worker._hathi_task_id('new')"],
  _hathi_recover_jobs: [
    "select * from graphile_worker._hathi_recover_jobs(array['1', 'dead'], array['1'], interval '1 second', 1, false, '{}', '{}')",
    "select * from graphile_worker._hathi_recover_jobs(array['1', 'dead'], array['1'], interval '1 second', 9, true, '{}', '{}')",
  ],
  _hathi_claim_jobs: [true, false].map(
    (relaxed) =>
      `select * from graphile_worker._hathi_claim_jobs('1', array(select id from graphile_worker._private_tasks), 5, 2, array['2'],
        null, null, '{}', '{}', '{}', ${relaxed ? "null" : "array(select id from graphile_worker._private_job_queues)"}, ${relaxed})`,
  ),
  _hathi_complete_jobs: [settleOf("_hathi_complete_jobs", "")],
  _hathi_fail_jobs: [settleOf("_hathi_fail_jobs", "array[1], array['error'], array['[2]'], ", ", true")],
  _hathi_return_jobs: [true, false].map((started) =>
    settleOf("_hathi_return_jobs", "array[2], ", `, ${started}, interval '1 second', 'error'`),
  ),
  _hathi_adopt_suspect: [
    "select id from graphile_worker._hathi_adopt_suspect('1', array(select id from graphile_worker._private_tasks), null, null, null)",
  ],
  _hathi_find_dead_workers: [
    `select * from graphile_worker._hathi_find_dead_workers(interval '1 minute', 2, array['1'], interval '1 second', true, null)`,
  ],
};

/** Jobs that wait, run and hold a queue, and workers that are alive and silent. */
async function fill({ query }: TestDatabase): Promise<void> {
  await query("select graphile_worker.add_job('1', '[1]', '1', job_key => '1', flags => array['1'])");
  await query("select graphile_worker.add_job('1', '[1]', '1', job_key => 'running')");
  await query("select graphile_worker.add_job('1')");
  await query(`update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now() - interval '1 day', attempts = 1
    where key = 'running'`);
  await query(
    "update graphile_worker._private_job_queues set locked_by = 'dead', locked_at = now() - interval '1 day'",
  );
  await query(`insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata)
    values ('1', now() + interval '1 day', null), ('dead', now() - interval '1 day', '{"concurrency":4}')`);
  await query(
    "insert into graphile_worker._hathi_worker_lines (id, key) select id, 1 from graphile_worker._private_workers",
  );
  await query("insert into graphile_worker._private_job_queues (queue_name, locked_at) values ('paused', 'infinity')");
  await query("insert into graphile_worker._hathi_pauses (kind, name) values ('queue', 'paused')");
  // A job that was running when its worker died, and waits for a worker to adopt it.
  await query(`with parked as (
      update graphile_worker._private_jobs set locked_by = 'hathi-recovery', locked_at = now() where key = '1' returning id
    )
    insert into graphile_worker._hathi_job_crashes (job_id, attempt, crashes, deaths, since, release_at)
    select id, 1, 1, 1, now(), now() from parked`);
}

/** How a call ends with this path; what it did is undone. */
async function outcome(client: PoolClient, path: string, text: string, schema: string): Promise<string> {
  await client.query("begin");
  try {
    await client.query(`set local search_path = ${path}`);
    const { rowCount } = await client.query(forSchema(text, schema));
    return `${rowCount} rows`;
  } catch (error) {
    return `${(error as { code?: string }).code} ${(error as Error).message}`;
  } finally {
    await client.query("rollback");
  }
}

async function installed(schema: string): Promise<TestDatabase> {
  const database = await freshDatabase({ migrated: false, schema });
  await withClient(database, (client) => migrate({ client, schema }));
  return database;
}

async function withClient<T>(database: TestDatabase, callback: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await database.pool.connect();
  try {
    return await callback(client);
  } finally {
    client.release();
  }
}

/** Calls each function with a clean path and with one on which everything of PostgreSQL has a hostile copy in front of it. */
async function attack(database: TestDatabase, attacker: string, functions: readonly FunctionRow[]): Promise<string[]> {
  const calls = functions.filter(({ is_trigger }) => !is_trigger).flatMap(callsOf);
  // Fire the triggers.
  calls.push("delete from graphile_worker._private_workers where id operator(pg_catalog.=) '1'");
  calls.push("update graphile_worker._private_job_queues set locked_at = null, locked_by = null");
  const before = await withClient(database, async (client) => {
    const outcomes: string[] = [];
    for (const text of calls) outcomes.push(await outcome(client, "pg_catalog", text, database.schema));
    return outcomes;
  });
  // A call that fails by itself would attack nothing.
  const handmade = new Set(functions.flatMap(({ name }) => known[name] ?? []));
  for (const [index, text] of calls.entries()) if (handmade.has(text)) expect(before[index], text).toMatch(/ rows$/);
  await copyEverything(database, attacker);
  return withClient(database, async (client) => {
    const hijacked: string[] = [];
    for (const [index, text] of calls.entries()) {
      const after = await outcome(client, "public, pg_catalog", text, database.schema);
      if (after !== before[index]) hijacked.push(`${text}: ${before[index]}, but under attack ${after}`);
    }
    return hijacked;
  });
}

test.each(schemas)(
  "no function of the schema '%s' uses what an attacker offers on the caller's search path",
  async (schema) => {
    const attacker = await makeAttacker();
    const database = await installed(schema);
    await fill(database);
    const functions = await listFunctions(database);
    expect(functions.length).toBeGreaterThan(20);
    expect(await attack(database, attacker, functions)).toEqual([]);
  },
);

test("a function that trusts the caller's search path is caught by the attack", async () => {
  const attacker = await makeAttacker();
  const database = await freshDatabase();
  await database.query(`create function graphile_worker.careless(name text) returns bigint language sql
    as $$ select hashtextextended('hathi ' || name, 0) $$`);
  const functions = (await listFunctions(database)).filter(({ name }) => name === "careless");
  expect(await attack(database, attacker, functions)).toEqual([
    expect.stringMatching(/careless.*under attack TRAP0/),
    expect.stringMatching(/careless.*under attack TRAP0/),
    expect.stringMatching(/careless.*under attack TRAP0/),
  ]);
});

test("every function fixes its search path or was bound to PostgreSQL's own names when it was made", async () => {
  const functions = await listFunctions(await freshDatabase());
  const open = functions.filter(
    ({ settings, is_bound }) => !is_bound && !settings?.includes("search_path=pg_catalog, pg_temp"),
  );
  expect(open.map(({ name }) => name)).toEqual([]);
});

test("better matching overloads in 'public' do not run as the role that adds and removes jobs", async () => {
  const attacker = await makeAttacker();
  const database = await freshDatabase();
  await asRole(
    database,
    attacker,
    `create function public.hashtextextended(text, integer) returns bigint language plpgsql
      as $$ begin raise exception 'hijacked as %', current_user; end $$;
    create function public.join_up(text, double precision) returns text language plpgsql
      as $$ begin raise exception 'hijacked as %', current_user; end $$;
    create operator public.|| (leftarg = text, rightarg = double precision, function = public.join_up);
    create function public.unnest(text[]) returns setof text language plpgsql
      as $$ begin raise exception 'hijacked as %', current_user; end $$;`,
  );
  await expect(database.query("select hashtextextended('a', 0)")).rejects.toThrow(/hijacked/);
  await expect(database.query("select 'a'::text || random()")).rejects.toThrow(/hijacked/);
  await database.query(
    "select graphile_worker.add_job('greet', queue_name => 'q', job_key => 'k', flags => array['f'])",
  );
  await database.query("select graphile_worker.remove_job('k')");
  await database.query("select graphile_worker._hathi_probation(1)");
  await withClient(database, (client) => migrate({ client, schema: "graphile_worker" }));
  expect(await database.jobs()).toEqual([]);
});

const boundToPublic = `
  select pg_describe_object(classid, objid, objsubid) as object, pg_describe_object(refclassid, refobjid, refobjsubid) as used
  from pg_depend
  where refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
    and (refobjid in (select oid from pg_proc where pronamespace = 'public'::regnamespace)
      or refobjid in (select oid from pg_operator where oprnamespace = 'public'::regnamespace))
    and objid not in (select oid from pg_operator)`;

test("an install on a hostile search path binds nothing to an attacker's functions and operators", async () => {
  const attacker = await makeAttacker();
  const database = await freshDatabase({ migrated: false });
  await copyEverything(database, attacker);
  await withClient(database, async (client) => {
    const takePath = async (): Promise<void> => {
      await client.query("set search_path = public, pg_catalog");
    };
    const leavePath = async (): Promise<void> => {
      await client.query("reset search_path");
    };
    await migrate({ client, schema: "graphile_worker", hooks: { prebootstrap: takePath, postmigrate: leavePath } });
  });
  expect(await database.query(boundToPublic)).toEqual([]);
  await database.query("select graphile_worker.add_job('greet')");
  expect(await database.jobs()).toHaveLength(1);
});

test("so does the script of a dry run", async () => {
  const attacker = await makeAttacker();
  const database = await freshDatabase({ migrated: false });
  const script = await withClient(database, (client) => describeMigration({ client, schema: "graphile_worker" }));
  await copyEverything(database, attacker);
  await withClient(database, async (client) => {
    await client.query("set search_path = public, pg_catalog");
    await client.query(script);
    await client.query("reset search_path");
  });
  expect(await database.query(boundToPublic)).toEqual([]);
});
