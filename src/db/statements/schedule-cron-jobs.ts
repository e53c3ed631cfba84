import { shortPatienceMs, statement } from "../statement.ts";

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
 * Schedules the runs that are due at one moment. Moving `last_execution` forward is the lock: of all processes, original
 * workers among them, one moves it for an entry and moment, and that one adds the job in the same statement.
 */
export const scheduleCronJobs = statement<{ at: Date; runs: readonly CronRunSpec[] }, ScheduledCronRun>({
  name: "schedule_cron_jobs",
  patienceMs: shortPatienceMs,
  values: ({ at, runs }) => [at, JSON.stringify(runs.map((run, position) => ({ ...run, position })))],
  // Rows are locked in the order of their names, so that two processes cannot wait for each other.
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
      returning crontab.identifier
    )
    select
      identifier,
      case when is_wanted then graphile_worker._hathi_add_cron_job(
        identifier, may_overlap, task, payload, queue_name, coalesce(run_at, $1::timestamptz), max_attempts, job_key,
        priority, flags, job_key_mode
      ) end as job_id
    from run
    join advanced using (identifier)
    order by position`,
});
