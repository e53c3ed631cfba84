import type { DbJob } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";

/** Jobs that run are left alone. */
export const failByHand = statement<{ ids: readonly string[]; reason: string | null }, DbJob>({
  name: "fail_by_hand",
  values: ({ ids, reason }) => [ids, reason],
  text: `
    select ${jobColumns}
    from graphile_worker.permanently_fail_jobs(job_ids => $1::bigint[], error_message => $2::text) as job`,
});
