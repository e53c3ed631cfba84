import { shortPatienceMs, statement } from "../statement.ts";

/** Makes the locks of long jobs young again, so that nobody's four-hour rule takes them away. */
export const refreshLocks = statement<
  { poolId: string; jobIds: readonly string[]; queueIds: readonly number[]; clock: Date | null },
  never
>({
  name: "refresh_locks",
  patienceMs: shortPatienceMs,
  values: ({ poolId, jobIds, queueIds, clock }) => [poolId, jobIds, queueIds, clock],
  text: `
    with queues as (
      update graphile_worker._private_job_queues
      set locked_at = coalesce($4::timestamptz, now())
      where id = any ($3::integer[]) and locked_by = $1::text
    )
    update graphile_worker._private_jobs
    set locked_at = coalesce($4::timestamptz, now())
    where id = any ($2::bigint[]) and locked_by = $1::text`,
});
