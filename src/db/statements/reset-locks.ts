import { statement } from "../statement.ts";

/** Unlocks jobs and queues that have been locked for four hours: their worker is taken for dead, whoever it was. */
export const resetLocks = statement<{ clock: Date | null }, never>({
  name: "reset_locks",
  values: ({ clock }) => [clock],
  text: `
    with jobs as (
      update graphile_worker._private_jobs
      set locked_at = null, locked_by = null, run_at = greatest(run_at, coalesce($1::timestamptz, now()))
      where locked_at < coalesce($1::timestamptz, now()) - interval '4 hours'
    ), retirements as (
      delete from graphile_worker._private_job_retirements as retired
      where not exists (select from graphile_worker._private_jobs as job where job.id = retired.id)
    )
    update graphile_worker._private_job_queues
    set locked_at = null, locked_by = null
    where locked_at < coalesce($1::timestamptz, now()) - interval '4 hours'`,
});
