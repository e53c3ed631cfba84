import type { DbJob, JobKeyMode } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";
import type { NewJob } from "./new-job.ts";

/** Adds one job, in any key mode. */
export const addJob = statement<NewJob & { readonly jobKeyMode: JobKeyMode | null }, DbJob>({
  name: "add_job",
  values: (job) => [
    job.identifier,
    job.payload,
    job.queueName,
    job.runAt,
    job.maxAttempts,
    job.jobKey,
    job.priority,
    job.flags,
    job.jobKeyMode,
  ],
  text: `
    select ${jobColumns}
    from graphile_worker.add_job(
      identifier => $1::text,
      payload => $2::json,
      queue_name => $3::text,
      run_at => $4::timestamptz,
      max_attempts => $5::integer,
      job_key => $6::text,
      priority => $7::integer,
      flags => $8::text[],
      job_key_mode => $9::text
    ) as job`,
});
