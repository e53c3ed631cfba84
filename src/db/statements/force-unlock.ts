import { statement } from "../statement.ts";

/** For pools that are certainly dead: what they held is free at once. */
export const forceUnlock = statement<{ poolIds: readonly string[] }, object>({
  name: "force_unlock",
  values: ({ poolIds }) => [poolIds],
  text: "select from graphile_worker.force_unlock_workers(worker_ids => $1::text[])",
});
