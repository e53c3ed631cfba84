import { shortPatienceMs, statement } from "../statement.ts";

export interface ReadPayloadsParams {
  readonly poolId: string;
  readonly jobIds: readonly string[];
}

/** The payloads, as JSON text, of jobs that are locked for a pool. */
export const readPayloads = statement<ReadPayloadsParams, { readonly id: string; readonly payload: string }>({
  name: "read_payloads",
  patienceMs: shortPatienceMs,
  values: ({ poolId, jobIds }) => [poolId, jobIds],
  text: `
    select job.id::text as id, job.payload::text as payload
    from graphile_worker._private_jobs as job
    where job.id = any ($2::bigint[]) and job.locked_by = $1::text`,
});
