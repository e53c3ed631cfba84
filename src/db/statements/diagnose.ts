import { statement } from "../statement.ts";

export interface ServerFactsRow {
  readonly version: string;
  readonly role: string;
  readonly database: string;
  /** The server's clock, in milliseconds. */
  readonly clock_ms: number;
  readonly connections: number;
  readonly max_connections: number;
  /** Row-level security does not bind the role, or a policy shows it all rows. */
  readonly sees_jobs: boolean;
}

export const readServerFacts = statement<{ schema: string }, ServerFactsRow>({
  name: "read_server_facts",
  values: ({ schema }) => [schema],
  text: `
    select current_setting('server_version') as version, current_user as role, current_database() as database,
      (extract(epoch from clock_timestamp()) * 1000::numeric)::float8 as clock_ms,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      current_setting('max_connections')::int as max_connections,
      coalesce((
        select not row_security_active(class.oid) or exists (
          select from pg_policy as policy
          where policy.polrelid = class.oid
            and policy.polpermissive
            and policy.polcmd in ('r', '*')
            and pg_get_expr(policy.polqual, class.oid) = 'true'
            and (0::oid = any (policy.polroles) or exists (
              select from pg_catalog.unnest(policy.polroles) as member where pg_has_role(member, 'usage')
            ))
        )
        from pg_class as class
        join pg_namespace as namespace on namespace.oid = class.relnamespace
        where namespace.nspname = $1::text and class.relname = '_private_jobs'
      ), true) as sees_jobs`,
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

export interface HistoryHealthRow {
  readonly partitions: number;
  readonly bytes: number;
  /** Partitions that should have been dropped more than a day ago. */
  readonly expired: number;
  /** Rows that have no partition of their own day; counted up to a limit. */
  readonly unplaced: number;
}

/** How history is kept. */
export const readHistoryHealth = statement<{ most: number }, HistoryHealthRow>({
  name: "read_history_health",
  values: ({ most }) => [most],
  text: `
    select count(*) filter (where part.relname::text ~ '_[0-9]{8}$')::int as partitions,
      coalesce(sum(pg_total_relation_size(part.oid::regclass)), 0)::float8 as bytes,
      count(*) filter (
        where part.relname::text ~ '_[0-9]{8}$' and to_date(right(part.relname::text, 8), 'YYYYMMDD') < (now() at time zone 'utc')::date
      )::int as expired,
      (select count(*) from (select from graphile_worker._hathi_history_batches_rest limit $1::bigint) as few)::float8
        + (select count(*) from (select from graphile_worker._hathi_history_attempts_rest limit $1::bigint) as few)::float8
        + (select count(*) from (select from graphile_worker._hathi_job_links_rest limit $1::bigint) as few)::float8 as unplaced
    from pg_inherits
    join pg_class as part on part.oid = inhrelid
    where inhparent in (
      select typrelid
      from pg_type
      where oid in (
        pg_typeof(null::graphile_worker._hathi_history_batches), pg_typeof(null::graphile_worker._hathi_history_attempts),
        pg_typeof(null::graphile_worker._hathi_job_links)
      )
    )`,
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
    select n_live_tup::float8 as live, n_dead_tup::float8 as dead, pg_catalog.pg_total_relation_size(relid)::float8 as bytes,
      greatest(last_vacuum, last_autovacuum) as last_vacuum
    from pg_stat_user_tables
    where schemaname = $1::text and relname = '_private_jobs'`,
});

/** Something that keeps vacuum from clearing finished jobs away. */
export interface VacuumHolderRow {
  readonly kind: "session" | "prepared" | "slot" | "standby";
  readonly name: string;
  /** Null where PostgreSQL does not say since when. */
  readonly seconds: number | null;
  /** How many transactions have begun since. */
  readonly transactions: number | null;
  readonly what: string;
  /** How to end it. */
  readonly remedy: string;
}

/** Who holds back vacuum on the tables of jobs, the worst first. */
export const listVacuumHolders = statement<Record<string, never>, VacuumHolderRow>({
  name: "list_vacuum_holders",
  values: () => [],
  text: `
    select kind, name, seconds, transactions, what, remedy
    from graphile_worker._hathi_vacuum_holders()`,
});

/** Locks within their four hours that have not been refreshed for long. */
export const countOldLocks = statement<Record<string, never>, { readonly count: number }>({
  name: "count_old_locks",
  values: () => [],
  text: `
    select count(*)::int as count from graphile_worker._private_jobs where locked_at < now() - interval '4 hours'`,
});

export interface SettingRow {
  readonly name: string;
  /** Null where the server does not know the setting. */
  readonly value: string | null;
  readonly role: string;
}

/** How this connection is set up, by its role, its database or the server. */
export const readSettings = statement<{ names: readonly string[] }, SettingRow>({
  name: "read_settings",
  values: ({ names }) => [names],
  text: `
    select name, current_setting(name, true) as value, current_user::text as role
    from pg_catalog.unnest($1::text[]) as name`,
});

export interface OrphansRow {
  readonly jobs: number;
  readonly task_ids: number[] | null;
  readonly queue_ids: number[] | null;
}

/** Jobs whose task or queue is gone: nothing can run them. */
export const findOrphans = statement<Record<string, never>, OrphansRow>({
  name: "find_orphans",
  values: () => [],
  text: `
    with used as (
      select task_id, job_queue_id, count(*) as jobs from graphile_worker._private_jobs group by task_id, job_queue_id
    ), orphaned as (
      select
        used.jobs,
        case when task.id is null then used.task_id end as task_id,
        case when queue.id is null then used.job_queue_id end as queue_id
      from used
      left join graphile_worker._private_tasks as task on task.id = used.task_id
      left join graphile_worker._private_job_queues as queue on queue.id = used.job_queue_id
      where task.id is null or (used.job_queue_id is not null and queue.id is null)
    )
    select coalesce(sum(jobs), 0)::float8 as jobs, pg_catalog.array_agg(distinct task_id) filter (where task_id is not null) as task_ids,
      pg_catalog.array_agg(distinct queue_id) filter (where queue_id is not null) as queue_ids
    from orphaned`,
});
