import type { Job } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";
import type { NewJob } from "./new-job.ts";

export interface AddJobsParams {
  readonly jobs: readonly NewJob[];
  readonly preserveRunAt: boolean;
}

/** All jobs in one parameter; rows come back in their order, each with the name of its own task. */
export const addJobs = statement<AddJobsParams, Job>({
  name: "add_jobs",
  values: ({ jobs, preserveRunAt }) => [`[${jobs.map(toSpec).join(",")}]`, preserveRunAt],
  text: `
    select ${jobColumns}, task.identifier as task_identifier
    from graphile_worker.add_jobs(
      array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)),
      $2::boolean
    ) with ordinality as job
    left join graphile_worker._private_tasks as task on task.id = job.task_id
    order by job.ordinality`,
});

/** The payload is JSON already and is put in as it is. */
function toSpec({ payload, queueName, runAt, maxAttempts, jobKey, ...rest }: NewJob): string {
  const spec = { ...rest, queue_name: queueName, run_at: runAt, max_attempts: maxAttempts, job_key: jobKey };
  return `${JSON.stringify(spec).slice(0, -1)},"payload":${payload}}`;
}
