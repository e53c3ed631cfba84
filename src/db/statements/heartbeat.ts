import { shortPatienceMs, statement } from "../statement.ts";

/** Registers a worker, so that its death is noticed. */
export const registerWorker = statement<{ id: string; metadata: object }, object>({
  name: "register_worker",
  patienceMs: shortPatienceMs,
  values: ({ id, metadata }) => [id, JSON.stringify(metadata)],
  text: "select from graphile_worker.worker_heartbeat(worker_id => $1::text, metadata => $2::json)",
});

/** Deregisters a worker; what it still holds then has no owner. */
export const deregisterWorker = statement<{ id: string }, object>({
  name: "deregister_worker",
  patienceMs: shortPatienceMs,
  values: ({ id }) => [id],
  text: "select from graphile_worker.worker_deregister(worker_id => $1::text)",
});

export interface BeatRow {
  /** False if the worker was taken for dead and its jobs were given to others. */
  readonly is_known: boolean;
  /** When, by the server's clock. */
  readonly now_ms: number;
  /** The server process we speak to: another one each time is the mark of a transaction pooler. */
  readonly pid: number;
  /** The newest breaking change of Graphile Worker's schema, and of what we add to it. */
  readonly breaking: number | null;
  readonly announced: number | null;
}

/**
 * A heartbeat. Unlike a registration it never brings back a worker that others have buried. With a key it also tells others which
 * lock this connection holds; without one, the previous key stays.
 */
export const beat = statement<{ id: string; metadata: object; key: string | null }, BeatRow>({
  name: "beat",
  values: ({ id, metadata, key }) => [id, JSON.stringify(metadata), key],
  text: `
    with beaten as (
      update graphile_worker._private_workers
      set last_heartbeat_at = now(), metadata = (coalesce(metadata, '{}'::jsonb) - 'blocked'::text) || $2::jsonb
      where id = $1::text
      returning id
    ), line as (
      insert into graphile_worker._hathi_worker_lines (id, key)
      select id, $3::bigint from beaten where $3::bigint is not null
      on conflict (id) do update set key = excluded.key, lost_at = null
    )
    select exists (select from beaten) as is_known, date_part('epoch', now()) * 1000::float8 as now_ms, pg_backend_pid() as pid,
      (select max(id) from graphile_worker.migrations where breaking) as breaking,
      (select max(id) from graphile_worker._hathi_announced_migrations) as announced`,
});

/** What jobs are called. */
export const nameJobs = statement<{ jobIds: readonly string[] }, { readonly id: string; readonly task: string }>({
  name: "name_jobs",
  values: ({ jobIds }) => [jobIds],
  text: `
    select job.id::text as id, task.identifier as task
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.id = any ($1::bigint[])`,
});

/** What a server process is known by: process ids are used again. */
export interface SessionRow {
  readonly pid: number;
  readonly started: string;
}

/**
 * Makes the server notice by itself that we are gone, and bounds every statement there: what we no longer wait for must not go on. It
 * also takes the lock with a new key, for which nothing can wait.
 */
export const openLine = statement<{ key: string; statementMs: number; silenceMs: number }, SessionRow>({
  name: "open_line",
  values: ({ key, statementMs, silenceMs }) => [
    key,
    String(statementMs),
    String(Math.max(1, Math.round(silenceMs / 3_000))),
    String(silenceMs),
  ],
  text: `
    select activity.pid, activity.backend_start::text as started,
      pg_try_advisory_lock($1::bigint) as is_locked,
      set_config('statement_timeout', $2::text, false), set_config('lock_timeout', $2::text, false),
      set_config('tcp_keepalives_idle', $3::text, false), set_config('tcp_keepalives_interval', $3::text, false),
      set_config('tcp_keepalives_count', '2', false), set_config('tcp_user_timeout', $4::text, false)
    from pg_stat_activity as activity
    where activity.pid = pg_backend_pid()`,
});

/** Ends the session of our former connection, which the server may take for alive. */
export const endSession = statement<SessionRow, object>({
  name: "end_session",
  values: ({ pid, started }) => [pid, started],
  text: `
    select pg_terminate_backend(activity.pid)
    from pg_stat_activity as activity
    where activity.pid = $1::integer and activity.backend_start::text = $2::text`,
});

/** Tells others that this worker holds no lock any more, so its absence means nothing. */
export const withdrawLine = statement<{ id: string }, object>({
  name: "withdraw_line",
  values: ({ id }) => [id],
  text: "delete from graphile_worker._hathi_worker_lines where id = $1::text",
});

export interface WatchRow {
  /** The server's clock. */
  readonly now_ms: number;
  /** When the first of the lost lines is to count as dead. Null: none is lost. */
  readonly dead_in_ms: number | null;
  /** When the first of the parked jobs may run again. Null: none is parked. */
  readonly parked_in_ms: number | null;
}

/** The same, and tells other processes of it, and when the last full sweep began. */
export const watchLinesAnnouncing = statement<{ graceMs: number; by: string; schema: string }, WatchRow>({
  name: "watch_lines_announcing",
  patienceMs: shortPatienceMs,
  values: ({ graceMs, by, schema }) => [graceMs, JSON.stringify({ by, schema }).slice(0, -1)],
  text: `
    with watched as materialized (
      select graphile_worker._hathi_watch_lines($1::double precision * interval '1 millisecond') as dead_in_ms,
        graphile_worker._hathi_tend_parked() as parked_in_ms
    )
    select date_part('epoch', now()) * 1000::float8 as now_ms, dead_in_ms, parked_in_ms,
      pg_notify(
        'hathi:fleet',
        $2::text || ',"quiet":' || (dead_in_ms is null and parked_in_ms is null)::text || ',"sweptMs":' || coalesce(
          (select date_part('epoch', now() - swept_at) * 1000::float8 from graphile_worker._hathi_sweeps where swept_at <= now())::text, 'null'
        ) || '}'
      )
    from watched`,
});

/** Notes which lines are lost, and looks after parked jobs. */
export const watchLines = statement<{ graceMs: number }, WatchRow>({
  name: "watch_lines",
  patienceMs: shortPatienceMs,
  values: ({ graceMs }) => [graceMs],
  text: `
    select date_part('epoch', now()) * 1000::float8 as now_ms,
      graphile_worker._hathi_watch_lines($1::double precision * interval '1 millisecond') as dead_in_ms,
      graphile_worker._hathi_tend_parked() as parked_in_ms`,
});
