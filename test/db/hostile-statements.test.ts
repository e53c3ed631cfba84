import { readdirSync } from "node:fs";
import type { PoolClient } from "pg";
import { expect, test } from "vitest";
import { forSchema, type Statement } from "../../src/db/statement.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { asRole, makeAttacker } from "../support/hostile-path.ts";

/** Types that our statements deal in. */
const types = [
  ...["smallint", "integer", "bigint", "double precision", "numeric", "text", "name", "boolean", "json", "jsonb"],
  ...["interval", "timestamptz", "oid", "regclass", "text[]", "integer[]", "bigint[]"],
];
const comparisons = ["=", "<>", "<", "<=", ">", ">=", "~~", "~~*", "?", "?|", "&&", "@>", "~"];
const calculations = ["+", "-", "*", "/", "||", "->", "->>", "&", "|", "<<", ">>"];

/** All statements that the library sends, wherever a file of the folder exports them. */
async function allStatements(): Promise<Statement<never, unknown>[]> {
  const folder = new URL("../../src/db/statements/", import.meta.url);
  const found: Statement<never, unknown>[] = [];
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("text" in value && "values" in value) found.push(value as Statement<never, unknown>);
    else for (const part of Object.values(value)) collect(part);
  };
  for (const file of readdirSync(folder)) collect({ ...(await import(new URL(file, folder).href)) });
  return found;
}

/** The functions that a statement calls without saying whose they are. */
function bareCalls(text: string): string[] {
  return [...text.matchAll(/(?<![.\w])([a-z_]+) ?\(/g)].map((match) => match[1]!);
}

/** The types that the parameters are cast to; without a cast it is the limit of a page or the id of a queue. */
function parametersOf(text: string): string[] {
  const casts = new Map(
    [...text.matchAll(/\$(\d+)(?:::([a-z0-9]+(?: precision)?(?:\[\])?))?/g)].map(([, n, type]) => [Number(n), type]),
  );
  for (const [, n, type] of text.matchAll(/\$(\d+)::([a-z0-9]+(?: precision)?(?:\[\])?)/g)) casts.set(Number(n), type);
  return Array.from({ length: Math.max(0, ...casts.keys()) }, (_, index) => {
    const isLimit = new RegExp(`limit \\$${index + 1}\\b`).test(text);
    return casts.get(index + 1) ?? (isLimit ? "bigint" : "integer");
  });
}

/** Lets the attacker offer an exact match for each call and each pair of operands for which PostgreSQL itself has none. */
async function offerOverloads(database: TestDatabase, attacker: string, names: readonly string[]): Promise<void> {
  const list = (values: readonly string[]): string => `array[${values.map((value) => `'${value}'`).join(", ")}]`;
  await asRole(
    database,
    attacker,
    `do $$
    declare
      one text; two text; sign text; called text;
      all_types constant text[] := ${list(types)};
    begin
      foreach called in array ${list(names)} loop
        continue when not exists (select from pg_proc where proname = called and pronamespace = 'pg_catalog'::regnamespace);
        foreach one in array all_types loop
          if to_regprocedure(format('pg_catalog.%I(%s)', called, one)) is null then
            execute format('create function public.%I(%s) returns integer language sql as %L', called, one, 'select 1');
          end if;
          foreach two in array all_types loop
            if to_regprocedure(format('pg_catalog.%I(%s, %s)', called, one, two)) is null then
              execute format('create function public.%I(%s, %s) returns integer language sql as %L', called, one, two, 'select 1');
            end if;
          end loop;
        end loop;
      end loop;
      foreach one in array all_types loop
        foreach two in array all_types loop
          execute format('create function public.is_trap(%s, %s) returns boolean language sql as %L', one, two, 'select true');
          execute format('create function public.give_trap(%s, %s) returns %s language sql as %L', one, two, one, 'select $1');
          foreach sign in array ${list([...comparisons, ...calculations])} loop
            if to_regoperator(format('pg_catalog.%s(%s, %s)', sign, one, two)) is null then
              execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.%s)', sign, one, two,
                case when sign = any (${list(comparisons)}) then 'is_trap' else 'give_trap' end);
            end if;
          end loop;
        end loop;
      end loop;
    end $$`,
  );
}

/** What of the attacker's the statement would use, or why it could not be understood any more. */
async function findHijack(client: PoolClient, text: string): Promise<string | undefined> {
  await client.query("begin");
  try {
    await client.query(`create function public.probe(${parametersOf(text).join(", ")}) returns void language sql
      begin atomic ${forSchema(text, "graphile_worker")}; end`);
    const { rows } = await client.query<{ used: string | null }>(`
      select string_agg(pg_describe_object(refclassid, refobjid, 0), ', ') as used
      from pg_depend
      where classid = 'pg_proc'::regclass
        and objid = (select oid from pg_proc where proname = 'probe' and pronamespace = 'public'::regnamespace)
        and (refobjid in (select oid from pg_proc where pronamespace = 'public'::regnamespace)
          or refobjid in (select oid from pg_operator where oprnamespace = 'public'::regnamespace))`);
    return rows[0]?.used ?? undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.query("rollback");
  }
}

test("no statement of the library resolves to a better matching function or operator in 'public'", {
  timeout: 180_000,
}, async () => {
  const attacker = await makeAttacker();
  const database = await freshDatabase();
  const statements = await allStatements();
  expect(statements.length).toBeGreaterThan(50);
  const careless = "select hashtextextended($1::text, 0), 'a'::text || random()";
  const texts = [careless, ...statements.map(({ text }) => text)];
  const client = await database.pool.connect();
  try {
    for (const text of texts) expect.soft(await findHijack(client, text), text).toBeUndefined();
    await offerOverloads(database, attacker, [...new Set(texts.flatMap(bareCalls))]);
    expect(await findHijack(client, careless)).toMatch(/hashtextextended\(text,integer\)/);
    const hijacked: Record<string, string> = {};
    for (const { name, text } of statements) {
      const used = await findHijack(client, text);
      if (used !== undefined) hijacked[name] = used;
    }
    expect(hijacked).toEqual({});
  } finally {
    client.release();
  }
});
