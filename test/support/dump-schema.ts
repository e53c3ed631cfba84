import type { TestDatabase } from "./database.ts";

/** Writes the schema as one script for people to read: the embedded server comes without pg_dump, which is wordier too. */
export async function dumpSchema(database: TestDatabase): Promise<string> {
  const list = async (text: string): Promise<string[]> =>
    (await database.query<{ text: string }>(text)).map(({ text }) =>
      text.trimEnd().replaceAll('"graphile_worker".', "graphile_worker."),
    );
  const sections = [
    ["Tables", await list(tables)],
    ["Indexes", await list(indexes)],
    ["Types", await list(types)],
    ["Views", await list(views)],
    ["Functions", (await list(functions)).map(tidyFunction)],
  ] as const;
  const body = sections.map(([title, parts]) => `-- ${title}\n\n${parts.join("\n\n")}\n`).join("\n");
  return `${head}\n${body}`;
}

const head = `-- Where the migrations lead. Made by a test, for people to read; to change the schema, write a migration.
-- Rows in use: migrations has Graphile Worker's ids 1 to 20, _hathi_migrations has ours.
`;

const inSchema = "'graphile_worker'::regnamespace";

const tables = `
  select 'create table graphile_worker.' || class.relname || E' (\\n' || (
      select string_agg('  ' || line, E',\\n' order by rank, position, line)
      from (
        select 0 as rank, attnum as position, concat_ws(' ', attname, format_type(atttypid, atttypmod),
          case when attnotnull then 'not null' end,
          case when attidentity = 'a' then 'generated always as identity (sequence name '
            || pg_get_serial_sequence('graphile_worker.' || quote_ident(class.relname), attname) || ')' end,
          case when attgenerated = 's' then 'generated always as ' || pg_get_expr(adbin, adrelid) || ' stored'
            else 'default ' || pg_get_expr(adbin, adrelid) end) as line
        from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid = class.oid and attnum > 0 and not attisdropped
        union all
        select 1, 0, 'constraint ' || conname || ' ' || pg_get_constraintdef(oid)
        from pg_constraint where conrelid = class.oid and contype <> 'n'
      ) as lines
    ) || E'\\n)' || coalesce(' partition by ' || pg_get_partkeydef(class.oid), '') || ';'
    || case when class.relrowsecurity
      then E'\\nalter table graphile_worker.' || class.relname || ' enable row level security;' else '' end as text
  from pg_class as class
  where class.relnamespace = ${inSchema} and class.relkind in ('r', 'p') and not class.relispartition
  order by class.relname`;

const indexes = `
  select pg_get_indexdef(class.oid) || ';' as text
  from pg_class as class
  where class.relnamespace = ${inSchema} and class.relkind in ('i', 'I') and not class.relispartition
    and not exists (select from pg_constraint where conindid = class.oid)
  order by class.relname`;

const types = `
  select 'create type graphile_worker.' || class.relname || E' as (\\n'
    || string_agg('  ' || attname || ' ' || format_type(atttypid, atttypmod), E',\\n' order by attnum) || E'\\n);' as text
  from pg_class as class join pg_attribute on attrelid = class.oid
  where class.relnamespace = ${inSchema} and class.relkind = 'c'
  group by class.relname order by class.relname`;

const views = `
  select 'create view graphile_worker.' || class.relname || E' as\\n' || pg_get_viewdef(class.oid) as text
  from pg_class as class
  where class.relnamespace = ${inSchema} and class.relkind = 'v'
  order by class.relname`;

const functions = `
  select pg_get_functiondef(oid) as text from pg_proc where pronamespace = ${inSchema} order by proname`;

function tidyFunction(text: string): string {
  return `${text.replace("CREATE OR REPLACE FUNCTION", "create function").replaceAll("$function$", "$hathi$")};`;
}
