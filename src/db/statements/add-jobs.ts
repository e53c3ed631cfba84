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

/** The payload is JSON already and is put in as it is. What is null is left out: most is, and the server reads the less. */
function toSpec({ identifier, payload, queueName, runAt, maxAttempts, jobKey, priority, flags }: NewJob): string {
  const spec = JSON.stringify({
    identifier,
    queue_name: queueName ?? undefined,
    run_at: runAt ?? undefined,
    max_attempts: maxAttempts ?? undefined,
    job_key: jobKey ?? undefined,
    priority: priority ?? undefined,
    flags: flags ?? undefined,
  });
  return payload === null ? spec : `${spec.slice(0, -1)},"payload":${payload}}`;
}
