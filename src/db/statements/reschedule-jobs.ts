import type { DbJob } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";

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
