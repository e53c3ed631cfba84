import type { DbJob } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";

/** No row if the key is unknown. */
export const removeJob = statement<{ jobKey: string }, DbJob>({
  name: "remove_job",
  values: ({ jobKey }) => [jobKey],
  text: `
    select ${jobColumns}
    from graphile_worker.remove_job(job_key => $1::text) as job
    where job.id is not null`,
});
