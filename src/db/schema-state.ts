import type { ClientBase } from "pg";
import { codeOf } from "../errors.ts";
import { undefinedColumn, undefinedTable } from "./sqlstate.ts";
import { forSchema } from "./statement.ts";

/** What is in the schema now, as far as installing and adopting care. */
export interface SchemaState {
  readonly postgresVersion: number;
  readonly hasSchema: boolean;
  /** Ids in Graphile Worker's ledger, ascending; undefined where there is none. */
  readonly recorded: readonly number[] | undefined;
  /** Ledgers of before 0.14, and some that an administrator made by hand, lack the column. */
  readonly hasBreakingColumn: boolean;
  /** Those of them that are marked as breaking. */
  readonly breaking: readonly number[];
  /** Ids in our own ledger; undefined where there is none yet. */
  readonly ours: readonly number[] | undefined;
  /** Names of all tables, views, indexes and functions in the schema. */
  readonly objects: ReadonlySet<string>;
}

/** Reads the state; a schema that is up to date takes one round trip. */
export async function readSchemaState(client: ClientBase, schema: string): Promise<SchemaState> {
  try {
    const { rows } = await client.query(forSchema(glance, schema), [schema]);
    return { ...rows[0], objects: new Set(rows[0].objects) };
  } catch (error) {
    const code = codeOf(error);
    if (code !== undefinedTable && code !== undefinedColumn) throw error;
    return examineSchema(client, schema);
  }
}

/** As above, but never causes an error, so it may be asked inside a transaction. */
export async function examineSchema(client: ClientBase, schema: string): Promise<SchemaState> {
  const { rows } = await client.query(catalogue, [schema]);
  const found = rows[0];
  const objects = new Set<string>(found.objects);
  const ids = async (text: string): Promise<number[]> =>
    (await client.query<{ id: number }>(forSchema(text, schema))).rows.map(({ id }) => id);
  return {
    ...found,
    objects,
    recorded: objects.has("migrations")
      ? await ids("select id from graphile_worker.migrations order by id")
      : undefined,
    breaking: found.hasBreakingColumn
      ? await ids("select id from graphile_worker.migrations where breaking order by id")
      : [],
    ours: objects.has("_hathi_migrations")
      ? await ids("select id from graphile_worker._hathi_migrations order by id")
      : undefined,
  };
}

/** A hook of the user may have changed the search path of the connection. */
const equals = "operator(pg_catalog.=)";

const common = `
  pg_catalog.current_setting('server_version_num')::integer as "postgresVersion",
  exists (select from pg_catalog.pg_namespace where nspname ${equals} $1::text) as "hasSchema",
  array(
    select class.relname::text from pg_catalog.pg_class as class
    join pg_catalog.pg_namespace as schema on schema.oid ${equals} class.relnamespace where schema.nspname ${equals} $1::text
    union all
    select function.proname::text from pg_catalog.pg_proc as function
    join pg_catalog.pg_namespace as schema on schema.oid ${equals} function.pronamespace where schema.nspname ${equals} $1::text
  ) as objects`;

const glance = `
select ${common},
  true as "hasBreakingColumn",
  array(select id from graphile_worker.migrations order by id) as recorded,
  array(select id from graphile_worker.migrations where breaking order by id) as breaking,
  array(select id from graphile_worker._hathi_migrations order by id) as ours`;

const catalogue = `
select ${common},
  exists (
    select from pg_catalog.pg_attribute as attribute
    join pg_catalog.pg_class as class on class.oid ${equals} attribute.attrelid
    join pg_catalog.pg_namespace as schema on schema.oid ${equals} class.relnamespace
    where schema.nspname ${equals} $1::text and class.relname ${equals} 'migrations' and attribute.attname ${equals} 'breaking'
  ) as "hasBreakingColumn"`;
