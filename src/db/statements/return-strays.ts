import { shortPatienceMs, statement } from "../statement.ts";
import type { LostRow } from "./complete-jobs.ts";

/** Gives back whatever is locked by a pool and not among what it holds: jobs with their attempt restored, and queues. */
export const returnStrays = statement<
  { poolId: string; heldJobIds: readonly string[]; heldQueueIds: readonly number[] },
  LostRow
>({
  name: "return_strays",
  patienceMs: shortPatienceMs,
  values: ({ poolId, heldJobIds, heldQueueIds }) => [poolId, heldJobIds, heldQueueIds],
  text: `
    select graphile_worker._hathi_return_jobs(
      $1::text,
      array(select id from graphile_worker._private_jobs where locked_by = $1::text and id <> all ($2::bigint[])),
      array(select id from graphile_worker._private_job_queues where locked_by = $1::text and id <> all ($3::integer[])),
      null,
      null
    ) as lost`,
});
