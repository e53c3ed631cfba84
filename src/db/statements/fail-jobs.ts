import { shortPatienceMs, statement } from "../statement.ts";
import type { LostRow } from "./complete-jobs.ts";

/** Unlocks failed jobs for a later try (or leaves them, if that was the last), with their error and perhaps a smaller payload. */
export const failJobs = statement<
  {
    poolId: string;
    jobIds: readonly string[];
    /** The attempts that failed. */
    attempts: readonly number[];
    errors: readonly string[];
    /** JSON texts; null keeps the payload. */
    payloads: readonly (string | null)[];
    queueIds: readonly number[] | null;
  },
  LostRow
>({
  name: "fail_jobs",
  patienceMs: shortPatienceMs,
  values: ({ poolId, jobIds, attempts, errors, payloads, queueIds }) => [
    poolId,
    jobIds,
    attempts,
    errors,
    payloads,
    queueIds,
  ],
  text: `
    select graphile_worker._hathi_fail_jobs(
      $1::text, $2::bigint[], $3::integer[], $4::text[], $5::text[], $6::integer[]
    ) as lost`,
});
