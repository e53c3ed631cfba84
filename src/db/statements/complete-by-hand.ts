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
