import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import type { TestDatabase } from "./database.ts";

/**
 * Makes a role for an attacker. To be called before the database is made: the role can be dropped only when all that it owns is
 * gone, and what is made first is dropped last.
 */
export async function makeAttacker(): Promise<string> {
  const role = `attacker_${randomBytes(5).toString("hex")}`;
  const onServer = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: inject("postgres").url });
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  };
  await onServer(`create role ${role}`);
  onTestFinished(() => onServer(`drop role ${role}`));
  return role;
}

/**
 * Lets the attacker put a copy of every function, operator and table of PostgreSQL into `public`. Each fails when it is used,
 * so whatever resolves a name through a path that starts with `public` fails too.
 */
export async function copyEverything(database: TestDatabase, attacker: string): Promise<void> {
  await asRole(database, attacker, copyAll);
}

/** Runs SQL as a role that may create objects in `public`, as every role may before PostgreSQL 15. */
export async function asRole(database: TestDatabase, role: string, text: string): Promise<void> {
  const client = await database.pool.connect();
  try {
    await client.query(`grant create, usage on schema public to ${role}; set role ${role}`);
    await client.query(text);
  } finally {
    await client.query("reset role");
    client.release();
  }
}

const trap = "begin raise exception 'trapped' using errcode = 'TRAP0'; end";

const copyAll = `
do $$
declare
  copied record;
begin
  for copied in
    select distinct proname, oidvectortypes(proargtypes) as arguments, format_type(prorettype, null) as result
    from pg_proc where pronamespace = 'pg_catalog'::regnamespace
  loop
    begin
      execute format('create function public.%I(%s) returns %s language plpgsql as %L',
        copied.proname, copied.arguments, copied.result, $trap$${trap}$trap$);
    exception when others then null; -- a type that only C functions may take
    end;
  end loop;
  for copied in
    select oprname, oprleft, oprright, format_type(nullif(oprleft, 0), null) as left_type, format_type(oprright, null) as right_type, proname
    from pg_operator join pg_proc on pg_proc.oid = oprcode where oprnamespace = 'pg_catalog'::regnamespace
  loop
    begin
      execute format('create operator public.%s (%s rightarg = %s, function = public.%I)', copied.oprname,
        case when copied.oprleft <> 0 then format('leftarg = %s,', copied.left_type) end, copied.right_type, copied.proname);
    exception when others then null;
    end;
  end loop;
  for copied in select relname from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v') loop
    execute format('create table public.%I ()', copied.relname);
  end loop;
end
$$`;
