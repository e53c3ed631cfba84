import type { Job } from "../../job.ts";
import { shortPatienceMs, statement } from "../statement.ts";
import { jobColumns, lightJobColumns } from "./job-columns.ts";

/** These may have to look at all jobs. */
const longPatienceMs = 5 * 60_000;

/** Gives a row if no full sweep was begun by anybody within the time; then this one is ours. */
export const takeSweepTurn = statement<{ withinMs: number }, object>({
  name: "take_sweep_turn",
  patienceMs: shortPatienceMs,
  values: ({ withinMs }) => [withinMs],
  text: `
    insert into graphile_worker._hathi_sweeps as sweep (id, swept_at) values (true, now())
    on conflict (id) do update set swept_at = now()
    where sweep.swept_at < now() - $1::double precision * interval '1 millisecond' or sweep.swept_at > now()
    returning id`,
});

/** Should the sweeper vanish from the net, the server ends its sweep after this long without a word, and others may sweep. */
export const limitSweep = statement<{ idleMs: number }, object>({
  name: "limit_sweep",
  patienceMs: shortPatienceMs,
  values: ({ idleMs }) => [String(idleMs)],
  text: "select set_config('idle_in_transaction_session_timeout', $1::text, true)",
});

/** One sweep at a time in a schema; the lock ends with the transaction. */
export const lockSweep = statement<{ schema: string }, { readonly is_locked: boolean; readonly now_ms: number }>({
  name: "lock_sweep",
  patienceMs: shortPatienceMs,
  values: ({ schema }) => [`hathi sweep ${schema}`],
  text: `
    select pg_try_advisory_xact_lock(hashtextextended($1::text, 0::bigint)) as is_locked,
      date_part('epoch', now()) * 1000::float8 as now_ms`,
});

export interface DeadWorkerRow {
  readonly id: string;
  /** It sent no heartbeat, its connection broke and did not come back, or it is not registered but left locks behind. */
  readonly reason: "silent" | "lost" | "orphan";
  readonly last_heartbeat_at: Date | null;
  readonly metadata: unknown;
}

export const findDeadWorkers = statement<
  {
    thresholdMs: number;
    resilience: number;
    resilientFlags: readonly string[];
    graceMs: number;
    withOrphans: boolean;
    /** For how long the caller's own heartbeats have arrived without a break; null if it sends none. */
    witnessedMs: number | null;
  },
  DeadWorkerRow
>({
  name: "find_dead_workers",
  patienceMs: longPatienceMs,
  values: ({ thresholdMs, resilience, resilientFlags, graceMs, withOrphans, witnessedMs }) => [
    thresholdMs,
    resilience,
    resilientFlags,
    graceMs,
    withOrphans,
    witnessedMs,
  ],
  text: `
    select worker_id as id, reason, last_heartbeat_at, metadata
    from graphile_worker._hathi_find_dead_workers(
      $1::double precision * interval '1 millisecond', $2::double precision, $3::text[],
      $4::double precision * interval '1 millisecond', $5::boolean, $6::double precision * interval '1 millisecond'
    )`,
});

/** The jobs that workers hold, and whether they were cancelled. */
export const readHeldJobs = statement<{ workerIds: readonly string[] }, Job & { readonly is_cancelled: boolean }>({
  name: "read_held_jobs",
  patienceMs: longPatienceMs,
  values: ({ workerIds }) => [workerIds],
  text: `
    select ${jobColumns}, task.identifier as task_identifier, exists (
        select from graphile_worker._hathi_job_cancellations as entry where entry.job_id = job.id and entry.outcome is null
      ) as is_cancelled
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.locked_by = any ($1::text[])
    order by job.id
    for update of job skip locked`,
});

export interface RecoveredRow {
  readonly id: string;
  readonly worker_id: string;
  readonly outcome: "recovered" | "parked" | "suspect" | "failed" | "cancelled";
  readonly task_id: number;
  readonly task_identifier: string;
  /** The one that the death has cut short, and how long it had waited and run; null if nothing is known of the worker. */
  readonly attempt: number;
  readonly wait_ms: number;
  readonly run_ms: number | null;
}

export const recoverJobs = statement<
  {
    workerIds: readonly string[];
    /** Those whose connection is known to be gone. */
    lostIds: readonly string[];
    delayMs: number;
    maxCrashes: number;
    withBackoff: boolean;
    /** Jobs that stay locked. */
    kept: readonly string[];
    /** Jobs that are freed whatever they did. */
    pardoned: readonly string[];
  },
  RecoveredRow
>({
  name: "recover_jobs",
  patienceMs: longPatienceMs,
  values: ({ workerIds, lostIds, delayMs, maxCrashes, withBackoff, kept, pardoned }) => [
    workerIds,
    lostIds,
    delayMs,
    maxCrashes,
    withBackoff,
    kept,
    pardoned,
  ],
  text: `
    select recovered.job_id::text as id, recovered.worker_id, recovered.outcome, task.id as task_id, task.identifier as task_identifier,
      recovered.attempt, recovered.wait_ms, recovered.run_ms
    from graphile_worker._hathi_recover_jobs(
      $1::text[], $2::text[], $3::double precision * interval '1 millisecond', $4::integer, $5::boolean, $6::bigint[], $7::bigint[]
    ) as recovered
    join graphile_worker._private_jobs as job on job.id = recovered.job_id
    join graphile_worker._private_tasks as task on task.id = job.task_id
    order by recovered.job_id`,
});

/** What a pool may run, as in a claim. */
export interface AdoptParams {
  readonly poolId: string;
  readonly taskIds: readonly number[];
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  readonly clock: Date | null;
  readonly workerNames: readonly string[];
}

export interface AdoptedRow extends Omit<Job, "task_identifier"> {
  /** Its payload is left out, and to be read on its own. */
  readonly is_large: boolean;
  readonly probation_ms: number;
}

/** Claims the next job that was running when a worker died and may run again now. */
export const adoptSuspect = statement<AdoptParams, AdoptedRow>({
  name: "adopt_suspect",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, taskIds, forbidden, accepted, clock, workerNames }) => [
    poolId,
    taskIds,
    forbidden,
    accepted,
    clock,
    workerNames,
  ],
  text: `
    select ${lightJobColumns}, (
        select date_part('epoch', graphile_worker._hathi_probation(crash.deaths)) * 1000::float8
        from graphile_worker._hathi_job_crashes as crash
        where crash.job_id = job.id
      ) as probation_ms
    from graphile_worker._hathi_adopt_suspect(
      $1::text,
      case when exists (select from graphile_worker._hathi_pauses)
        then graphile_worker._hathi_unpaused_tasks($6::text[], $2::integer[], $5::timestamptz)
        else $2::integer[]
      end, $3::text[], $4::text[], $5::timestamptz
    ) as job`,
});

/** What a hook decided about a job that was just recovered. */
export const rescheduleRecovered = statement<{ id: string; runAt: Date; attempts: number | null }, object>({
  name: "reschedule_recovered",
  patienceMs: shortPatienceMs,
  values: ({ id, runAt, attempts }) => [id, runAt, attempts],
  text: `
    update graphile_worker._private_jobs
    set run_at = $2::timestamptz, attempts = coalesce($3::smallint, attempts)
    where id = $1::bigint and locked_at is null
      and not exists (select from graphile_worker._private_job_retirements where id = $1::bigint)`,
});

/** Ends those of the recovered jobs that were cancelled. */
export const endCancelled = statement<{ ids: readonly string[] }, object>({
  name: "end_cancelled",
  patienceMs: shortPatienceMs,
  values: ({ ids }) => [ids],
  text: "select from graphile_worker._hathi_bury_cancelled($1::bigint[])",
});

export const buryWorkers = statement<{ workerIds: readonly string[] }, object>({
  name: "bury_workers",
  patienceMs: shortPatienceMs,
  values: ({ workerIds }) => [workerIds],
  text: "select from graphile_worker.delete_stale_workers($1::text[])",
});

/** Whether something of these workers was held by another transaction, so that it is still to be recovered. */
export const findLeftovers = statement<
  { workerIds: readonly string[]; kept: readonly string[] },
  { readonly has_leftovers: boolean }
>({
  name: "find_leftovers",
  patienceMs: longPatienceMs,
  values: ({ workerIds, kept }) => [workerIds, kept],
  text: `
    select exists (
      select from graphile_worker._private_jobs where locked_by = any ($1::text[]) and id <> all ($2::bigint[])
    ) or exists (
      select from graphile_worker._private_job_queues as queue
      where queue.locked_by = any ($1::text[]) and not exists (
        select from graphile_worker._private_jobs as job where job.id = any ($2::bigint[]) and job.job_queue_id = queue.id
      )
    ) as has_leftovers`,
});

/** Forgets workers that left long ago and hold nothing, and crashes of jobs that are done. */
export const forgetFormerWorkers = statement<Record<string, never>, object>({
  name: "forget_former_workers",
  patienceMs: longPatienceMs,
  values: () => [],
  text: `
    with done as (
      delete from graphile_worker._hathi_job_crashes as crash
      where not exists (select from graphile_worker._private_jobs as job where job.id = crash.job_id)
    )
    delete from graphile_worker._hathi_former_workers as former
    where former.left_at < now() - interval '1 hour'
      and not exists (select from graphile_worker._private_jobs as job where job.locked_by = former.id)
      and not exists (select from graphile_worker._private_job_queues as queue where queue.locked_by = former.id)`,
});
