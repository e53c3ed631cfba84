import type { DbJob } from "../../job.ts";
import { shortPatienceMs, statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";
import type { Release, UnwrittenRow } from "./settle.ts";

/** Cancels jobs; running ones keep `locked_at`, and their signal aborts. */
export const cancelJobs = statement<{ ids: readonly string[]; reason: string | null; by?: string | null }, DbJob>({
  name: "cancel_jobs",
  values: ({ ids, reason, by }) => [ids, reason, by ?? null],
  text: `
    select ${jobColumns}
    from graphile_worker.cancel_jobs(job_ids => $1::bigint[], reason => $2::text, cancelled_by => $3::text) as job`,
});

export interface CancellationRow {
  readonly job_id: string;
  readonly reason: string | null;
  readonly cancelled_by: string | null;
}

/** Which of these jobs were cancelled and have not ended, and which of those that run are no longer locked by the pool. */
export const lookAtHeldJobs = statement<
  { ids: readonly string[]; poolId: string; runningIds: readonly string[] },
  CancellationRow & { readonly is_lost: boolean }
>({
  name: "look_at_held_jobs",
  patienceMs: shortPatienceMs,
  values: ({ ids, poolId, runningIds }) => [ids, poolId, runningIds],
  text: `
    select job_id::text as job_id, reason, cancelled_by, false as is_lost
    from graphile_worker._hathi_job_cancellations
    where outcome is null and job_id = any ($1::bigint[])
    union all
    select id::text, null, null, true
    from graphile_worker._hathi_missing($2::text, $3::bigint[], '{}'::bigint[]) as missing, pg_catalog.unnest(missing.lost) as id`,
});

/** What becomes of a job that did not succeed, where it is more than a plain failure. */
export type Ruling = "retry" | "give-up" | "snooze" | "cancel";

export interface RuledJob {
  readonly id: string;
  readonly attempt: number;
  readonly ruling: Ruling;
  readonly error: string;
  /** JSON; null keeps the payload. */
  readonly payload: string | null;
  readonly delayMs: number | null;
  readonly runAt: Date | null;
  /** How many snoozes are allowed; null for any number. */
  readonly cap: number | null;
  readonly token: string | null;
}

interface Rulings extends Release {
  readonly poolId: string;
  readonly jobs: readonly RuledJob[];
  readonly isInDoubt: boolean;
}

/** The parameters that every statement with rulings begins with. */
export function rulingValues({ poolId, jobs, queueIds, endedIds = [], isInDoubt }: Rulings): unknown[] {
  return [
    poolId,
    jobs.map(({ id }) => id),
    jobs.map(({ attempt }) => attempt),
    jobs.map(({ ruling }) => ruling),
    jobs.map(({ error }) => error),
    jobs.map(({ payload }) => payload),
    jobs.map(({ delayMs }) => delayMs),
    jobs.map(({ runAt }) => runAt?.toISOString() ?? null),
    jobs.map(({ cap }) => cap),
    jobs.map(({ token }) => token),
    queueIds,
    endedIds,
    isInDoubt,
  ];
}

export const ruleJobs = statement<Rulings, UnwrittenRow>({
  name: "rule_jobs",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: rulingValues,
  text: `
    select lost, held, held_queues, refused, cancelled
    from graphile_worker._hathi_rule_jobs(
      $1::text, $2::bigint[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::double precision[], $8::timestamptz[],
      $9::integer[], $10::text[], $11::integer[], $12::bigint[], $13::boolean
    )`,
});

interface OverrunKey {
  readonly jobId: string;
  readonly workerId: string;
  readonly attempt: number;
}

export const noteOverrun = statement<
  OverrunKey & { readonly task: string; readonly timeoutMs: number; readonly durationMs: number },
  object
>({
  name: "note_overrun",
  patienceMs: shortPatienceMs,
  values: ({ jobId, workerId, attempt, task, timeoutMs, durationMs }) => [
    jobId,
    workerId,
    attempt,
    task,
    timeoutMs,
    durationMs,
  ],
  text: `
    insert into graphile_worker._hathi_job_overruns (job_id, worker_id, attempt, task_identifier, timeout_ms, started_at)
    values (
      $1::bigint, $2::text, $3::integer, $4::text, $5::double precision, now() - $6::double precision * interval '1 millisecond'
    )
    on conflict do nothing`,
});

export const forgetOverrun = statement<OverrunKey, object>({
  name: "forget_overrun",
  patienceMs: shortPatienceMs,
  values: ({ jobId, workerId, attempt }) => [jobId, workerId, attempt],
  text: `
    delete from graphile_worker._hathi_job_overruns
    where job_id = $1::bigint and worker_id = $2::text and attempt = $3::integer`,
});

/** Closes and forgets what cancelled, snoozed and overrunning jobs left behind, and the progress of jobs that are gone. */
export const tidyControl = statement<Record<string, never>, object>({
  name: "tidy_control",
  patienceMs: 60_000,
  values: () => [],
  text: "select from graphile_worker._hathi_tidy_control(), graphile_worker._hathi_tidy_progress()",
});

export interface JobControlRow {
  readonly cancelled_at: Date | null;
  readonly cancelled_by: string | null;
  readonly cancel_reason: string | null;
  /** Null as long as the cancelled job has not ended. */
  readonly cancel_outcome: "cancelled" | "ended" | null;
  readonly cancelled_task: string | null;
  readonly snoozes: number | null;
  readonly snoozed_at: Date | null;
}

/** What was done to a job, whether or not it is still there. */
export const readJobControl = statement<{ id: string }, JobControlRow>({
  name: "read_job_control",
  values: ({ id }) => [id],
  text: `
    select cancellation.cancelled_at, cancellation.cancelled_by, cancellation.reason as cancel_reason,
      cancellation.outcome as cancel_outcome, cancellation.task_identifier as cancelled_task, snooze.snoozes, snooze.snoozed_at
    from (select $1::bigint as id) as job
    left join graphile_worker._hathi_job_cancellations as cancellation on cancellation.job_id = job.id
    left join graphile_worker._hathi_job_snoozes as snooze on snooze.job_id = job.id`,
});

export interface OverrunRow {
  readonly job_id: string;
  readonly task_identifier: string;
  readonly worker_id: string;
  readonly timeout_ms: number;
  readonly started_at: Date;
}

/** Attempts that overrun, as far as their workers have not left; of one job or one worker, or all of them. */
export const listOverruns = statement<{ jobId: string | null; workerId: string | null }, OverrunRow>({
  name: "list_overruns",
  values: ({ jobId, workerId }) => [jobId, workerId],
  text: `
    select overrun.job_id::text as job_id, overrun.task_identifier, overrun.worker_id, overrun.timeout_ms, overrun.started_at
    from graphile_worker._hathi_job_overruns as overrun
    where ($1::bigint is null or overrun.job_id = $1::bigint)
      and ($2::text is null or overrun.worker_id = $2::text)
      and not exists (select from graphile_worker._hathi_former_workers as former where former.id = overrun.worker_id)
    order by overrun.started_at, overrun.job_id`,
});

export interface ControlCountsRow {
  /** Running jobs that were cancelled. */
  readonly cancelling: number;
  /** Jobs that were cancelled within the last day. */
  readonly cancelled: number;
  /** Jobs that were put off by their task and are still there. */
  readonly snoozed: number;
  readonly overrunning: number;
}

export const countControlled = statement<Record<string, never>, ControlCountsRow>({
  name: "count_controlled",
  values: () => [],
  text: `
    select
      (select count(*)::float8 from graphile_worker._hathi_job_cancellations as entry
        where entry.outcome is null
          and exists (select from graphile_worker._private_jobs as job where job.id = entry.job_id)) as cancelling,
      (select count(*)::float8 from graphile_worker._hathi_job_cancellations
        where outcome = 'cancelled' and cancelled_at > now() - interval '1 day') as cancelled,
      (select count(*)::float8 from graphile_worker._hathi_job_snoozes as snooze
        where exists (select from graphile_worker._private_jobs as job where job.id = snooze.job_id)) as snoozed,
      (select count(*)::float8 from graphile_worker._hathi_job_overruns as overrun
        where not exists (
          select from graphile_worker._hathi_former_workers as former where former.id = overrun.worker_id
        )) as overrunning`,
});

/** Cancelled jobs that still run long after their signal should have aborted. */
export const findIgnoredCancels = statement<
  Record<string, never>,
  { readonly jobs: number; readonly workers: string[] }
>({
  name: "find_ignored_cancels",
  values: () => [],
  text: `
    select count(*)::float8 as jobs, coalesce((pg_catalog.array_agg(distinct job.locked_by))[1:5], '{}') as workers
    from graphile_worker._hathi_job_cancellations as entry
    join graphile_worker._private_jobs as job on job.id = entry.job_id
    where entry.outcome is null
      and job.locked_at is not null
      and entry.cancelled_at < now() - interval '30 seconds'`,
});
