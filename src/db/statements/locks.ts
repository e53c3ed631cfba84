import { shortPatienceMs, statement } from "../statement.ts";

/** Refreshes the locks of long jobs, so that no worker's four-hour rule releases them. */
export const refreshLocks = statement<
  { poolId: string; jobIds: readonly string[]; queueIds: readonly number[]; clock: Date | null },
  never
>({
  name: "refresh_locks",
  patienceMs: shortPatienceMs,
  values: ({ poolId, jobIds, queueIds, clock }) => [poolId, jobIds, queueIds, clock],
  text: `
    with mine as (
      select id
      from graphile_worker._private_jobs
      where id = any ($2::bigint[]) and locked_by = $1::text
      order by id
      for update skip locked
    ), jobs as (
      update graphile_worker._private_jobs
      set locked_at = coalesce($4::timestamptz, now())
      where id in (select id from mine)
    ), my_queues as (
      select id
      from graphile_worker._private_job_queues
      where id = any ($3::integer[]) and locked_by = $1::text
      order by id
      for no key update skip locked
    )
    update graphile_worker._private_job_queues
    set locked_at = coalesce($4::timestamptz, now())
    where id in (select id from my_queues)`,
});

/** It reads all jobs, so it may take a while; but the end of a worker waits for it. */
const patienceMs = 60_000;

/**
 * Unlocks jobs and queues that have been locked for four hours: their worker counts as dead, whoever it was. What a transaction
 * holds at this moment is left for the next time, not waited for.
 */
export const resetLocks = statement<{ clock: Date | null }, never>({
  name: "reset_locks",
  patienceMs,
  values: ({ clock }) => [clock],
  text: `
    with old_jobs as (
      select id from graphile_worker._private_jobs
      where locked_at < coalesce($1::timestamptz, now()) - interval '4 hours'
      order by id
      for update skip locked
    ), old_queues as (
      select id from graphile_worker._private_job_queues
      where locked_at < coalesce($1::timestamptz, now()) - interval '4 hours'
      order by id
      for no key update skip locked
    ), jobs as (
      update graphile_worker._private_jobs as job
      set locked_at = null, locked_by = null, run_at = greatest(job.run_at, coalesce($1::timestamptz, now()))
      from old_jobs
      where job.id = old_jobs.id
    ), retirements as (
      delete from graphile_worker._private_job_retirements as retired
      where not exists (select from graphile_worker._private_jobs as job where job.id = retired.id)
    )
    update graphile_worker._private_job_queues as queue
    set locked_at = null, locked_by = null
    from old_queues
    where queue.id = old_queues.id`,
});
