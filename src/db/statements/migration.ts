import { statement } from "../statement.ts";

/*
 * What a migration asks outside of its transactions, on the search path of its role: each name and operator must mean PostgreSQL's own, whatever
 * others have created in `public`.
 */

interface Turn {
  /** Whose turn; a name that all processes compute alike. */
  readonly name: string;
}

export const takeBuildTurn = statement<Turn, { isOurs: boolean }>({
  name: "take_build_turn",
  values: ({ name }) => [name],
  text: 'select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1::text, 0::bigint)) as "isOurs"',
});

export const endBuildTurn = statement<Turn, object>({
  name: "end_build_turn",
  values: ({ name }) => [name],
  text: "select pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended($1::text, 0::bigint))",
});

export interface FoundIndex {
  /** Null if there is none. */
  readonly isValid: boolean | null;
  /** The process that is building on the table. */
  readonly builder: number | null;
}

/** A build in progress holds this lock on its table from beginning to end, and is listed with the builds. */
export const findIndex = statement<{ schema: string; name: string; table: string }, FoundIndex>({
  name: "find_index",
  values: ({ schema, name, table }) => [schema, name, table],
  text: `
    select
      (
        select index.indisvalid
        from pg_catalog.pg_index as index
        join pg_catalog.pg_class as class on class.oid = index.indexrelid
        join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
        where namespace.nspname = $1::text and class.relname = $2::text
      ) as "isValid",
      (
        select lock.pid
        from pg_catalog.pg_locks as lock
        join pg_catalog.pg_stat_progress_create_index as progress on progress.pid = lock.pid
        where lock.relation = (
            select class.oid
            from pg_catalog.pg_class as class
            join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
            where namespace.nspname = $1::text and class.relname = $3::text
          )
          and lock.database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
          and lock.mode = 'ShareUpdateExclusiveLock'::text and lock.granted and lock.pid <> pg_catalog.pg_backend_pid()
        limit 1
      ) as builder`,
});

export interface BuildProgress {
  readonly phase: string;
  readonly percent: number;
}

export const readBuildProgress = statement<{ pid: number }, BuildProgress>({
  name: "read_build_progress",
  values: ({ pid }) => [pid],
  text: `
    select phase,
      (100::bigint * case when blocks_total > 0::bigint then blocks_done else tuples_done end
        / greatest(1::bigint, case when blocks_total > 0::bigint then blocks_total else tuples_total end))::integer as percent
    from pg_catalog.pg_stat_progress_create_index
    where pid = $1::integer`,
});

export interface HolderRow {
  readonly pid: number;
  readonly application: string | null;
  readonly role: string | null;
  readonly state: string | null;
  readonly seconds: number | null;
  readonly query: string | null;
}

// A role without privileges sees the process and the role of others, and null for the rest.
const describeActivity = `
    select activity.pid, activity.application_name as application, activity.usename as role, activity.state,
      pg_catalog.round(pg_catalog.date_part('epoch'::text, pg_catalog.clock_timestamp() - activity.xact_start))::integer as seconds,
      activity.query
    from pg_catalog.pg_stat_activity as activity`;

/** Who has the longest open transactions that hold locks on tables of the schema; at most three. */
export const listLockHolders = statement<{ schema: string }, HolderRow>({
  name: "list_lock_holders",
  values: ({ schema }) => [schema],
  text: `${describeActivity}
    where activity.pid in (
      select lock.pid
      from pg_catalog.pg_locks as lock
      join pg_catalog.pg_class as class on class.oid = lock.relation
      join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
      where lock.granted and namespace.nspname = $1::text and lock.pid <> pg_catalog.pg_backend_pid()
        and lock.database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
    )
    order by activity.xact_start
    limit 3`,
});

/** Who keeps this server process waiting now; at most three. */
export const listBlockers = statement<{ pid: number }, HolderRow>({
  name: "list_blockers",
  values: ({ pid }) => [pid],
  text: `${describeActivity}
    where activity.pid = any (pg_catalog.pg_blocking_pids($1::integer))
    order by activity.xact_start
    limit 3`,
});

export const announceMigration = statement<{ migration: number }, object>({
  name: "announce_migration",
  values: ({ migration }) => [migration],
  text: "insert into graphile_worker._hathi_announced_migrations (id) values ($1::integer) on conflict do nothing",
});

/** One that has been silent for long is not waited for: it is dead, or will find out when it wakes. */
export const findOldWorkers = statement<{ migration: number; silenceMs: number }, { id: string }>({
  name: "find_old_workers",
  values: ({ migration, silenceMs }) => [migration, silenceMs],
  text: `
    select id
    from graphile_worker._private_workers
    where last_heartbeat_at > now() - $2::double precision * interval '1 millisecond'
      and jsonb_typeof(metadata -> 'migration'::text) = 'number'::text
      and (metadata ->> 'migration'::text)::numeric < $1::numeric
    order by id`,
});
