import { shortPatienceMs, statement } from "../statement.ts";

/** Refreshes the locks of long jobs, so that no worker's four-hour rule releases them. */
export const refreshLocks = statement<
  { poolId: string; jobIds: readonly string[]; queueIds: readonly number[]; clock: Date | null },
  never
>({
  name: "refresh_locks",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, jobIds, queueIds, clock }) => [poolId, jobIds, queueIds, clock],
  text: "select graphile_worker._hathi_refresh_locks($1::text, $2::bigint[], $3::integer[], $4::timestamptz)",
});

/** It reads all jobs, so it may take a while; but the end of a worker waits for it. */
const patienceMs = 60_000;

/**
 * Unlocks jobs and queues that have been locked for four hours: their worker counts as dead, whoever it was. What a transaction
 * holds at this moment is left for the next time, not waited for.
 */
export const resetLocks = statement<{ clock: Date | null }, never>({
  name: "reset_locks",
  patienceMs,
  givesWay: true,
  values: ({ clock }) => [clock],
  text: "select graphile_worker._hathi_reset_locks($1::timestamptz)",
});
