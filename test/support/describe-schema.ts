import type { TestDatabase } from "./database.ts";

/** What a schema is made of, each thing as one line of text under its name; the schema's own name is left out. */
export interface SchemaDescription {
  /** `table.column` → type, nullability, default. */
  readonly columns: Record<string, string>;
  readonly constraints: Record<string, string>;
  readonly indexes: Record<string, string>;
  /** `name(arguments)` → result, volatility, strictness, security; bodies are not compared. */
  readonly functions: Record<string, string>;
  readonly views: Record<string, string>;
  /** Composite types. */
  readonly types: Record<string, string>;
  readonly sequences: Record<string, string>;
  readonly rowSecurity: Record<string, string>;
  readonly triggers: Record<string, string>;
}

/** Reads the catalogues; two schemas with equal descriptions are the same to every client. */
export async function describeSchema(database: TestDatabase, schema = database.schema): Promise<SchemaDescription> {
  const read = async (text: string): Promise<Record<string, string>> => {
    const rows = await database.query<{ name: string; text: string }>(text, [schema]);
    return Object.fromEntries(rows.map(({ name, text }) => [name, withoutSchema(text, schema)]));
  };
  return {
    columns: await read(`
      select class.relname || '.' || attribute.attname as name,
        concat_ws(' ', format_type(attribute.atttypid, attribute.atttypmod),
          case when attribute.attnotnull then 'not null' end,
          case attribute.attidentity when 'a' then 'generated always as identity' end,
          case when attribute.attgenerated = 's' then 'generated always as ' || pg_get_expr(initial.adbin, initial.adrelid)
            else 'default ' || pg_get_expr(initial.adbin, initial.adrelid) end) as text
      from pg_attribute as attribute
      join pg_class as class on class.oid = attribute.attrelid
      left join pg_attrdef as initial on initial.adrelid = class.oid and initial.adnum = attribute.attnum
      where class.relnamespace = ${inSchema}
        and class.relkind in ('r', 'v', 'c') and attribute.attnum > 0 and not attribute.attisdropped
      order by class.relname, attribute.attnum`),
    constraints: await read(`
      select class.relname || '.' || conname as name, pg_get_constraintdef(pg_constraint.oid) as text
      from pg_constraint join pg_class as class on class.oid = conrelid
      where connamespace = ${inSchema} and contype <> 'n' order by 1`),
    indexes: await read(`
      select class.relname as name, pg_get_indexdef(class.oid) as text
      from pg_class as class where class.relnamespace = ${inSchema} and class.relkind = 'i' order by 1`),
    functions: await read(`
      select proname || '(' || pg_get_function_arguments(oid) || ')' as name,
        concat_ws(' ', pg_get_function_result(oid), provolatile, case when proisstrict then 'strict' end,
          case when prosecdef then 'security definer' end) as text
      from pg_proc where pronamespace = ${inSchema} order by 1`),
    views: await read(`
      select class.relname as name, pg_get_viewdef(class.oid) as text
      from pg_class as class where class.relnamespace = ${inSchema} and class.relkind = 'v' order by 1`),
    types: await read(`
      select class.relname as name,
        string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) as text
      from pg_class as class join pg_attribute on attrelid = class.oid
      where class.relnamespace = ${inSchema} and class.relkind = 'c' group by 1 order by 1`),
    sequences: await read(`
      select class.relname as name, format_type(seqtypid, null) as text
      from pg_class as class join pg_sequence on seqrelid = class.oid
      where class.relnamespace = ${inSchema} order by 1`),
    rowSecurity: await read(`
      select class.relname as name,
        concat_ws(' ', class.relrowsecurity, class.relforcerowsecurity,
          (select count(*) from pg_policy where polrelid = class.oid)) as text
      from pg_class as class where class.relnamespace = ${inSchema} and class.relkind = 'r' order by 1`),
    triggers: await read(`
      select tgname as name, pg_get_triggerdef(pg_trigger.oid) as text
      from pg_trigger join pg_class as class on class.oid = tgrelid
      where class.relnamespace = ${inSchema} and not tgisinternal order by 1`),
  };
}

const inSchema = "(select oid from pg_namespace where nspname = $1)";

function withoutSchema(text: string, schema: string): string {
  return text.replaceAll(`${schema}.`, "").replaceAll(`"${schema.replaceAll('"', '""')}".`, "");
}
