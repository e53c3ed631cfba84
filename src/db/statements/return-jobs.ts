import { shortPatienceMs, statement } from "../statement.ts";
import type { LostRow } from "./complete-jobs.ts";

/** Gives jobs back with their attempt restored, and wakes those who may want them. */
export const returnJobs = statement<
  {
    poolId: string;
    jobIds: readonly string[];
    queueIds: readonly number[] | null;
    /** How long they must rest first; null for not at all. */
    delayMs: number | null;
    /** What to note as their last error; null keeps what is there. */
    reason: string | null;
  },
  LostRow
>({
  name: "return_jobs",
  patienceMs: shortPatienceMs,
  values: ({ poolId, jobIds, queueIds, delayMs, reason }) => [poolId, jobIds, queueIds, delayMs, reason],
  text: `
    select graphile_worker._hathi_return_jobs(
      $1::text, $2::bigint[], $3::integer[], $4::double precision * interval '1 millisecond', $5::text
    ) as lost`,
});
