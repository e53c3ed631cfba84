import { statement } from "../statement.ts";

export interface ServerFactsRow {
  readonly version: string;
  readonly role: string;
  readonly database: string;
  /** The server's clock, in milliseconds. */
  readonly clock_ms: number;
  readonly connections: number;
  readonly max_connections: number;
  /** The role owns the tables, or row-level security does not bind it. */
  readonly owns_tables: boolean;
}

export const readServerFacts = statement<{ schema: string }, ServerFactsRow>({
  name: "read_server_facts",
  values: ({ schema }) => [schema],
  text: `
    select current_setting('server_version') as version, current_user as role, current_database() as database,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as clock_ms,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      current_setting('max_connections')::int as max_connections,
      coalesce((
        select pg_has_role(class.relowner, 'usage') or role.rolbypassrls or role.rolsuper
        from pg_class as class
        join pg_namespace as namespace on namespace.oid = class.relnamespace
        join pg_roles as role on role.rolname = current_user
        where namespace.nspname = $1::text and class.relname = '_private_jobs'
      ), true) as owns_tables`,
});

export interface IndexRow {
  readonly name: string;
  readonly is_valid: boolean;
}

export const listIndexes = statement<{ schema: string }, IndexRow>({
  name: "list_indexes",
  values: ({ schema }) => [schema],
  text: `
    select class.relname::text as name, index.indisvalid as is_valid
    from pg_index as index
    join pg_class as class on class.oid = index.indexrelid
    join pg_namespace as namespace on namespace.oid = class.relnamespace
    where namespace.nspname = $1::text`,
});

export interface TableHealthRow {
  readonly live: number;
  readonly dead: number;
  readonly bytes: number;
  readonly last_vacuum: Date | null;
}

export const readTableHealth = statement<{ schema: string }, TableHealthRow>({
  name: "read_table_health",
  values: ({ schema }) => [schema],
  text: `
    select n_live_tup::float8 as live, n_dead_tup::float8 as dead, pg_total_relation_size(relid)::float8 as bytes,
      greatest(last_vacuum, last_autovacuum) as last_vacuum
    from pg_stat_user_tables
    where schemaname = $1::text and relname = '_private_jobs'`,
});

export interface OldTransactionRow {
  readonly what: string;
  readonly seconds: number;
}

/** What keeps vacuum from clearing finished jobs away: the oldest transaction that may still need to see them. */
export const findOldestTransaction = statement<Record<string, never>, OldTransactionRow>({
  name: "find_oldest_transaction",
  values: () => [],
  text: `
    select what, seconds::float8 as seconds from (
      select format('process %s of %s (%s)', pid, coalesce(usename, '?'), coalesce(nullif(application_name, ''), state)) as what,
        extract(epoch from now() - xact_start) as seconds
      from pg_stat_activity
      where xact_start is not null and pid <> pg_backend_pid()
        and (backend_xmin is not null or backend_xid is not null) and backend_type <> 'autovacuum worker'
      union all
      select format('prepared transaction %s', gid), extract(epoch from now() - prepared) from pg_prepared_xacts
    ) as transactions
    order by seconds desc
    limit 1`,
});

/** Locks that their four hours have not ended yet although nobody has touched them for long. */
export const countOldLocks = statement<Record<string, never>, { readonly count: number }>({
  name: "count_old_locks",
  values: () => [],
  text: `
    select count(*)::int as count from graphile_worker._private_jobs where locked_at < now() - interval '4 hours'`,
});
