import { statement } from "../statement.ts";

export interface LockOwnerRow {
  readonly id: string;
  readonly jobs: number;
  readonly queues: number;
  readonly oldest_lock_at: Date | null;
}

/** Who holds locks, and how many. */
export const listLockOwners = statement<Record<string, never>, LockOwnerRow>({
  name: "list_lock_owners",
  values: () => [],
  text: `
    with locks as (
      select locked_by, locked_at, 1 as jobs, 0 as queues
      from graphile_worker._private_jobs where locked_at is not null
      union all
      select locked_by, locked_at, 0, 1
      from graphile_worker._private_job_queues where locked_at is not null and locked_by is distinct from 'hathi:paused'
    )
    select coalesce(locked_by, '') as id, sum(jobs)::float8 as jobs, sum(queues)::float8 as queues,
      nullif(min(locked_at), 'infinity') as oldest_lock_at
    from locks
    group by 1
    order by 1`,
});

/** Schemas without crash recovery have no table of workers. */
export const hasWorkersTable = statement<{ schema: string }, { readonly has: boolean }>({
  name: "has_workers_table",
  values: ({ schema }) => [schema],
  text: `select to_regclass(pg_catalog.format('%I._private_workers', $1::text)) is not null as has`,
});

export interface RegisteredWorkerRow {
  readonly id: string;
  readonly started_at: Date;
  readonly last_heartbeat_at: Date;
  readonly seconds_since: number;
  readonly metadata: unknown;
}

/** Workers that send heartbeats, the latest first. */
export const listRegisteredWorkers = statement<Record<string, never>, RegisteredWorkerRow>({
  name: "list_registered_workers",
  values: () => [],
  text: `
    select id, started_at, last_heartbeat_at,
      extract(epoch from clock_timestamp() - last_heartbeat_at)::float8 as seconds_since, metadata
    from graphile_worker._private_workers
    order by last_heartbeat_at desc, id`,
});

/** Connections to this database that wait for news of jobs: each is a worker of some schema. */
export const countListeners = statement<Record<string, never>, { readonly listeners: number; readonly hidden: number }>(
  {
    name: "count_listeners",
    values: () => [],
    text: `
    select count(*) filter (where query ilike 'listen%"jobs:insert"%')::int as listeners,
      count(*) filter (where query = '<insufficient privilege>')::int as hidden
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`,
  },
);
