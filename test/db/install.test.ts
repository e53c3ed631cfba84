import { randomBytes } from "node:crypto";
import pg, { type PoolClient } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { describeMigration, type MigrateOptions, migrate } from "../../src/db/migrate.ts";
import { shippedMigrations } from "../../src/db/plan-migration.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { describeSchema } from "../support/describe-schema.ts";
import { listenTo } from "../support/notifications.ts";
import { startProcess } from "../support/process.ts";

const breakingIds = [1, 3, 11, 13, 14, 16, 19];

async function withClient<T>(pool: pg.Pool, callback: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    return await callback(client);
  } finally {
    client.release();
  }
}

function install(database: TestDatabase, options: Omit<MigrateOptions, "client" | "schema"> = {}): Promise<void> {
  return withClient(database.pool, (client) => migrate({ client, schema: database.schema, ...options }));
}

async function expectInstalled(database: TestDatabase): Promise<void> {
  const ledger = await database.query<{ id: number; breaking: boolean }>(
    "select id, breaking from graphile_worker.migrations order by id",
  );
  expect(ledger).toEqual(
    Array.from({ length: 20 }, (_, index) => ({ id: index + 1, breaking: breakingIds.includes(index + 1) })),
  );
  const ours = await database.query("select id, name from graphile_worker._hathi_migrations order by id");
  expect(ours).toEqual(shippedMigrations().map(({ id, name }) => ({ id, name })));
}

test("a fresh install records Graphile Worker's ids with their breaking flags, and ours in a table of their own", async () => {
  const database = await freshDatabase({ migrated: false });
  await install(database);
  await expectInstalled(database);
});

test("a second install changes nothing and asks one question", async () => {
  const database = await freshDatabase({ migrated: false });
  await install(database);
  const before = await database.query("select id, ts from graphile_worker.migrations order by id");
  const queries: string[] = [];
  await withClient(database.pool, async (client) => {
    const query = client.query.bind(client);
    const counting = new Proxy(client, {
      get: (target, name) =>
        name === "query"
          ? (text: string, values: unknown[]) => {
              queries.push(text);
              return query(text, values);
            }
          : Reflect.get(target, name),
    });
    await migrate({ client: counting, schema: database.schema });
  });
  expect(queries).toHaveLength(1);
  expect(await database.query("select id, ts from graphile_worker.migrations order by id")).toEqual(before);
});

test("any schema name will do, whatever is in it", async () => {
  const schema = 'odd "name" $&';
  const database = await freshDatabase({ migrated: false, schema });
  await install(database);
  await expectInstalled(database);
  await database.query("select graphile_worker.add_job('greet', '[1]', queue_name => 'q', job_key => 'k')");
  await database.query("select graphile_worker.add_job('greet', '[2]', queue_name => 'q', job_key => 'k')");
  expect(await database.jobs()).toMatchObject([{ payload: [1, 2], key: "k", queue_name: "q", revision: 1 }]);
  const [row] = await database.query("select graphile_worker.remove_job('k')");
  expect(row).toBeDefined();

  const standard = await freshDatabase();
  const [odd, usual] = [await describeSchema(database), await describeSchema(standard)];
  expect(odd.columns).toEqual(usual.columns);
  expect(odd.indexes).toEqual(usual.indexes);
  expect(Object.keys(odd.functions)).toHaveLength(Object.keys(usual.functions).length);
  // Nothing went astray into another schema.
  const strays = `select relname from pg_class where relnamespace not in (
      select oid from pg_namespace where nspname = $1 or nspname like 'pg\\_%' or nspname = 'information_schema')`;
  expect(await database.query(strays, [schema])).toEqual([]);
});

test("two schemas in one database keep out of each other's way", async () => {
  const database = await freshDatabase();
  await withClient(database.pool, (client) => migrate({ client, schema: "second" }));
  await database.query("select second.add_job('greet')");
  expect(await database.jobs()).toEqual([]);
});

test("twenty processes that install at the same moment all succeed", async () => {
  const database = await freshDatabase({ migrated: false });
  const library = builtLibrary();
  const processes = Array.from({ length: 20 }, () =>
    startProcess("migrate-process.mjs", [library, database.url, database.schema]),
  );
  await Promise.all(processes.map((process) => process.says(/ready/)));
  for (const process of processes) process.send("go");
  const ends = await Promise.all(processes.map(({ ended }) => ended));
  expect(processes.map((process) => process.output())).toEqual(processes.map(() => "ready\nmigrated\n"));
  expect(ends).toEqual(processes.map(() => 0));
  await expectInstalled(database);
}, 60_000);

/** A role that may log in and nothing else, and a pool for it. */
async function restrictedRole(database: TestDatabase): Promise<{ role: string; pool: pg.Pool }> {
  const role = `hathi_role_${randomBytes(5).toString("hex")}`;
  await database.query(`create role ${role} login password 'secret'`);
  await database.query(`revoke create on database ${database.name} from public`);
  const url = new URL(database.url);
  url.username = role;
  url.password = "secret";
  const pool = testPool(url.href, 2);
  onTestFinished(async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(`drop owned by ${role}; drop role ${role}`);
    await client.end();
  });
  return { role, pool };
}

test("a role that may not create schemas installs into one that an administrator made", async () => {
  const database = await freshDatabase({ migrated: false });
  const { role, pool } = await restrictedRole(database);
  const asRole = (): Promise<void> => withClient(pool, (client) => migrate({ client, schema: database.schema }));
  await expect(asRole()).rejects.toMatchObject({ code: "42501" });

  await database.pool.query(`
    create schema graphile_worker;
    create table graphile_worker.migrations (id int primary key, ts timestamptz not null default now());
    alter table graphile_worker.migrations add column breaking boolean not null default false;
    grant usage, create on schema graphile_worker to ${role};
    grant select, insert on graphile_worker.migrations to ${role};`);
  await asRole();
  await expectInstalled(database);
  await asRole();
  await pool.query("select graphile_worker.add_job('greet')");
  expect(await database.jobs()).toHaveLength(1);
});

test("an empty schema that the role owns is enough, too", async () => {
  const database = await freshDatabase({ migrated: false });
  const { role, pool } = await restrictedRole(database);
  await database.query(
    `create schema graphile_worker authorization ${role}`.replace("graphile_worker", '"graphile_worker"'),
  );
  await withClient(pool, (client) => migrate({ client, schema: database.schema }));
  await expectInstalled(database);
});

test("a dry run gives a script that installs the same, and nothing once that is done", async () => {
  const database = await freshDatabase({ migrated: false });
  const describe = (): Promise<string> =>
    withClient(database.pool, (client) => describeMigration({ client, schema: database.schema }));
  const script = await describe();
  expect(await database.query("select from pg_namespace where nspname = 'graphile_worker'")).toEqual([]);
  await database.pool.query(script);
  await expectInstalled(database);
  expect(await describe()).toBe("");
  await install(database);
});

test("an install that fails leaves nothing behind but the ledger", async () => {
  const database = await freshDatabase({ migrated: false });
  const failures: string[] = [];
  await database.pool.query(`
    create schema graphile_worker;
    create function graphile_worker.complete_jobs(job_ids bigint[]) returns integer language sql as 'select 1';`);
  await expect(
    install(database, {
      hooks: {
        migrationError: ({ error }) => {
          failures.push(error.message);
        },
      },
    }),
  ).rejects.toThrow(/cannot change return type/);
  expect(failures).toEqual([expect.stringMatching(/cannot change return type/)]);
  expect(await database.query("select id from graphile_worker.migrations")).toEqual([]);
  expect(await database.query("select to_regclass('graphile_worker._private_jobs') as jobs")).toEqual([{ jobs: null }]);
});

test("hooks and middleware run in their order, outside of any transaction", async () => {
  const database = await freshDatabase({ migrated: false });
  const { seen, hooks } = recordHooks();
  await install(database, { hooks });
  expect(seen).toEqual([
    "bootstrap begins",
    "prebootstrap",
    "postbootstrap",
    "bootstrap ends",
    "migrate begins",
    "premigrate",
    "postmigrate",
    "migrate ends",
  ]);
  seen.length = 0;
  await install(database, { hooks });
  expect(seen).toEqual(["migrate begins", "premigrate", "postmigrate", "migrate ends"]);
});

function recordHooks(): { seen: string[]; hooks: NonNullable<MigrateOptions["hooks"]> } {
  const seen: string[] = [];
  type Event = { client: PoolClient; postgresVersion: number; scratchpad: Record<string, unknown> };
  const note = async (name: string, { client, postgresVersion, scratchpad }: Event): Promise<void> => {
    scratchpad.count = Number(scratchpad.count ?? 0) + 1;
    expect(scratchpad.count).toBe(seen.length + 1);
    expect(postgresVersion).toBeGreaterThanOrEqual(120_000);
    const { rows } = await client.query("select now() = statement_timestamp() as is_outside");
    expect(rows).toEqual([{ is_outside: true }]);
    seen.push(name);
  };
  const wrap =
    (name: string) =>
    async (event: Event, next: () => Promise<void>): Promise<void> => {
      await note(`${name} begins`, event);
      await next();
      await note(`${name} ends`, event);
    };
  const hooks = {
    bootstrap: wrap("bootstrap"),
    migrate: wrap("migrate"),
    prebootstrap: (event: Event) => note("prebootstrap", event),
    postbootstrap: (event: Event) => note("postbootstrap", event),
    premigrate: (event: Event) => note("premigrate", event),
    postmigrate: (event: Event) => note("postmigrate", event),
  };
  return { seen, hooks };
}

test("an install never tells the workers of other schemas to stop", async () => {
  const database = await freshDatabase({ migrated: false });
  const { payloads } = await listenTo(database.url, "worker:migrate");
  await install(database);
  expect((await payloads()).map((payload) => JSON.parse(payload))).toEqual([{ migrationNumber: 20, breaking: false }]);
  await install(database);
  expect(await payloads()).toEqual([]);
});
