import { shortPatienceMs, statement } from "../statement.ts";

/** The server's clock, in milliseconds since 1970. */
export const readClock = statement<undefined, { readonly clock_ms: number }>({
  name: "read_clock",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: "select (extract(epoch from clock_timestamp()) * 1000::numeric)::float8 as clock_ms",
});

/** A crontab entry that some process has scheduled or registered before. */
export interface KnownCrontab {
  identifier: string;
  known_since: Date;
  last_execution: Date | null;
}

export const readKnownCrontabs = statement<void, KnownCrontab>({
  name: "read_known_crontabs",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: `
    select identifier, known_since, last_execution
    from graphile_worker._private_known_crontabs`,
});

/** Remembers when entries were first seen; those already known stay as they are. */
export const registerCrontabs = statement<{ identifiers: readonly string[]; since: Date }, never>({
  name: "register_crontabs",
  patienceMs: shortPatienceMs,
  values: ({ identifiers, since }) => [identifiers, since],
  text: `
    insert into graphile_worker._private_known_crontabs (identifier, known_since)
    select distinct identifier, $2::timestamptz
    from pg_catalog.unnest($1::text[]) as identifier
    order by identifier
    on conflict do nothing`,
});

/** One entry's run, as the statement reads it. */
export interface CronRunSpec {
  readonly identifier: string;
  readonly task: string;
  readonly payload: object;
  /** The moment of the run, if left out. */
  readonly run_at?: string;
  readonly queue_name?: string;
  readonly max_attempts?: number;
  readonly job_key?: string;
  readonly job_key_mode?: string;
  readonly priority?: number;
  readonly flags?: readonly string[];
  /** False: no job while the entry's previous one still waits or runs. */
  readonly may_overlap: boolean;
  /** False: the run counts as done, but no job is added. */
  readonly is_wanted: boolean;
}

/** A run that was this process's to schedule; `job_id` is null if no job was added for it. */
export interface ScheduledCronRun {
  readonly identifier: string;
  readonly job_id: string | null;
}

/**
 * Schedules the runs that are due at one moment; of those with a job key one at a time, since several keys at once could wait for an
 * application that has them in another order. Moving `last_execution` forward is the lock: of all processes, original
 * workers among them, one moves it for an entry and moment, and that one adds the job in the same statement.
 */
export const scheduleCronJobs = statement<
  { at: Date; runs: readonly CronRunSpec[]; isRepeat: boolean },
  ScheduledCronRun
>({
  name: "schedule_cron_jobs",
  patienceMs: shortPatienceMs,
  values: ({ at, runs, isRepeat }) => [
    at,
    JSON.stringify(runs.map((run, position) => ({ ...run, position }))),
    isRepeat,
  ],
  // A time that lies ahead of the server's clock was written by a clock that was wrong, so after a repeat it holds nothing up.
  // Rows are locked in the order of their names, so that two processes cannot wait for each other; tasks and queues before any job.
  text: `
    with run as (
      select distinct on (identifier)
        identifier, position, task, payload, run_at, queue_name, max_attempts, job_key, job_key_mode, priority, flags,
        may_overlap, is_wanted
      from json_to_recordset($2::json) as given (
        identifier text, position integer, task text, payload json, run_at timestamptz, queue_name text,
        max_attempts integer, job_key text, job_key_mode text, priority integer, flags text[], may_overlap boolean, is_wanted boolean
      )
      order by identifier, position
    ),
    advanced as (
      insert into graphile_worker._private_known_crontabs as crontab (identifier, known_since, last_execution)
      select identifier, $1::timestamptz, $1::timestamptz
      from run
      order by identifier
      on conflict (identifier) do update
      set last_execution = excluded.last_execution
      where crontab.last_execution is null or crontab.last_execution < excluded.last_execution
        or ($3::boolean and crontab.last_execution > now() + interval '1 minute')
      returning crontab.identifier
    ),
    named as materialized (
      select graphile_worker._hathi_keep_tasks(pg_catalog.array_agg(distinct task)),
        graphile_worker._hathi_keep_queues(coalesce(pg_catalog.array_agg(distinct queue_name) filter (where queue_name is not null), '{}'))
      from run
      join advanced using (identifier)
      where is_wanted
      having count(*) > 1
    )
    select
      identifier,
      case when is_wanted then graphile_worker._hathi_add_cron_job(
        identifier, may_overlap, task, payload, queue_name, coalesce(run_at, $1::timestamptz), max_attempts, job_key,
        priority, flags, job_key_mode
      ) end as job_id
    from run
    join advanced using (identifier)
    cross join (select count(*) from named) as prepared
    order by position`,
});
