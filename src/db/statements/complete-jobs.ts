import { shortPatienceMs, statement } from "../statement.ts";

/** Ids that were no longer this pool's when their end was written; nothing was changed for those. */
export interface LostRow {
  readonly lost: string[] | null;
}

/** Deletes done jobs and releases the queues that are through. */
export const completeJobs = statement<
  { poolId: string; jobIds: readonly string[]; queueIds: readonly number[] | null },
  LostRow
>({
  name: "complete_jobs",
  patienceMs: shortPatienceMs,
  // Written out here, since the driver looks at every element of an array by itself.
  values: ({ poolId, jobIds, queueIds }) => [poolId, `{${jobIds.join(",")}}`, queueIds],
  text: `
    select graphile_worker._hathi_complete_jobs($1::text, $2::bigint[], $3::integer[]) as lost`,
});
