import type { DbJob } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";

/** Jobs that run are left alone. */
export const completeByHand = statement<{ ids: readonly string[] }, DbJob>({
  name: "complete_by_hand",
  values: ({ ids }) => [ids],
  text: `
    select ${jobColumns}
    from graphile_worker.complete_jobs(job_ids => $1::bigint[]) as job`,
});

/** Jobs that run are left alone. */
export const failByHand = statement<{ ids: readonly string[]; reason: string | null }, DbJob>({
  name: "fail_by_hand",
  values: ({ ids, reason }) => [ids, reason],
  text: `
    select ${jobColumns}
    from graphile_worker.permanently_fail_jobs(job_ids => $1::bigint[], error_message => $2::text) as job`,
});

/** No row if the key is unknown. */
export const removeJob = statement<{ jobKey: string }, DbJob>({
  name: "remove_job",
  values: ({ jobKey }) => [jobKey],
  text: `
    select ${jobColumns}
    from graphile_worker.remove_job(job_key => $1::text) as job
    where job.id is not null`,
});

export interface RescheduleParams {
  readonly ids: readonly string[];
  readonly runAt: string | null;
  readonly priority: number | null;
  readonly attempts: number | null;
  readonly maxAttempts: number | null;
}

/** Changes what is given and keeps what is null; jobs that run are left alone. */
export const rescheduleJobs = statement<RescheduleParams, DbJob>({
  name: "reschedule_jobs",
  values: ({ ids, runAt, priority, attempts, maxAttempts }) => [ids, runAt, priority, attempts, maxAttempts],
  text: `
    select ${jobColumns}
    from graphile_worker.reschedule_jobs(
      job_ids => $1::bigint[],
      run_at => $2::timestamptz,
      priority => $3::integer,
      attempts => $4::integer,
      max_attempts => $5::integer
    ) as job`,
});

/** For pools that are certainly dead: what they held is free at once. */
export const forceUnlock = statement<{ poolIds: readonly string[] }, object>({
  name: "force_unlock",
  values: ({ poolIds }) => [poolIds],
  text: "select from graphile_worker.force_unlock_workers(worker_ids => $1::text[])",
});
