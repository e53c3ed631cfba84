import { statement } from "../statement.ts";
import { stateOfJob } from "./job-state.ts";

export interface JobSituationRow {
  readonly id: string;
  readonly state: "waiting" | "scheduled" | "running" | "dead";
  readonly task_id: number;
  /** Null if the task's row is gone. */
  readonly task_identifier: string | null;
  readonly queue_name: string | null;
  readonly job_queue_id: number | null;
  readonly priority: number;
  readonly run_at: Date;
  /** To the microsecond, which a Date cannot hold. */
  readonly exact_run_at: string;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  readonly flags: { [flag: string]: true } | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
  readonly queue_locked_at: Date | null;
  readonly queue_locked_by: string | null;
  /** The database's clock. */
  readonly now: Date;
}

/** One job and its queue, at one moment of the database's clock. */
export const readJobSituation = statement<{ id: string }, JobSituationRow>({
  name: "read_job_situation",
  values: ({ id }) => [id],
  text: `
    select
      job.id, ${stateOfJob} as state, job.task_id, task.identifier as task_identifier, queue.queue_name, job.job_queue_id,
      job.priority, job.run_at, job.run_at::text as exact_run_at, job.attempts, job.max_attempts, job.last_error, job.flags, job.locked_at, job.locked_by,
      case
        when queue.locked_at < 'infinity' then queue.locked_at
        when queue.locked_by <> 'hathi:paused' then (
          select max(holder.locked_at) from graphile_worker._private_jobs as holder
          where holder.job_queue_id = queue.id and holder.locked_by = queue.locked_by
        )
      end as queue_locked_at,
      nullif(queue.locked_by, 'hathi:paused') as queue_locked_by, now() as now
    from graphile_worker._private_jobs as job
    left join graphile_worker._private_tasks as task on task.id = job.task_id
    left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
    where job.id = $1::bigint`,
});

/** The highest id that was ever given out. */
export const readLastJobId = statement<{ schema: string }, { readonly last_id: string | null }>({
  name: "read_last_job_id",
  values: ({ schema }) => [schema],
  text: `
    select coalesce(pg_sequence_last_value(
      pg_get_serial_sequence(pg_catalog.format('%I._private_jobs', $1::text), 'id')::regclass), 0)::text as last_id`,
});

/** The job of a queue that is running. Not in an index: a queue has few, but nothing orders them by lock. */
export const findRunningJobOfQueue = statement<
  { queueId: number },
  { readonly id: string; readonly task_identifier: string }
>({
  name: "find_running_job_of_queue",
  values: ({ queueId }) => [queueId],
  text: `
    select job.id, task.identifier as task_identifier
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.job_queue_id = $1 and job.locked_at is not null
    order by job.locked_at
    limit 1`,
});

interface Place {
  readonly priority: number;
  readonly runAt: string;
  readonly id: string;
  readonly atMost: number;
}

/** Due jobs that come before a place in the order of work; stops counting at a limit. */
export const countJobsAhead = statement<Place, { readonly count: number }>({
  name: "count_jobs_ahead",
  values: ({ priority, runAt, id, atMost }) => [priority, runAt, id, atMost],
  text: `
    select count(*)::int as count from (
      select from graphile_worker._private_jobs
      where is_available and run_at <= now() and (priority, run_at, id) < ($1::smallint, $2::timestamptz, $3::bigint)
      limit $4
    ) as ahead`,
});

/** The same among the jobs of one queue. */
export const countQueueJobsAhead = statement<Place & { queueId: number }, { readonly count: number }>({
  name: "count_queue_jobs_ahead",
  values: ({ priority, runAt, id, atMost, queueId }) => [priority, runAt, id, atMost, queueId],
  text: `
    select count(*)::int as count from (
      select from graphile_worker._private_jobs
      where is_available and job_queue_id = $5 and run_at <= now()
        and (priority, run_at, id) < ($1::smallint, $2::timestamptz, $3::bigint)
      limit $4
    ) as ahead`,
});
