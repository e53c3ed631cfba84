import type { DbJob } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";
import type { NewJob } from "./new-job.ts";

export interface AddJobsParams {
  readonly jobs: readonly NewJob[];
  readonly preserveRunAt: boolean;
}

/** All jobs in one parameter; rows come back in their order. */
export const addJobs = statement<AddJobsParams, DbJob>({
  name: "add_jobs",
  values: ({ jobs, preserveRunAt }) => [`[${jobs.map(toSpec).join(",")}]`, preserveRunAt],
  text: `
    select ${jobColumns}
    from graphile_worker.add_jobs(
      array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)),
      $2::boolean
    ) as job`,
});

/** The payload is JSON already and is put in as it is. */
function toSpec({ payload, queueName, runAt, maxAttempts, jobKey, ...rest }: NewJob): string {
  const spec = { ...rest, queue_name: queueName, run_at: runAt, max_attempts: maxAttempts, job_key: jobKey };
  return `${JSON.stringify(spec).slice(0, -1)},"payload":${payload}}`;
}
