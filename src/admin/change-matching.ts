import type { Database } from "../db/database.ts";
import { checkInteger } from "../job-checks.ts";
import type { JobFilter } from "./job-filter.ts";
import { eachJobId } from "./list-jobs.ts";

/** Changes one batch of jobs and returns those it changed, as `retryJobs` and `completeJobs` do. */
export type ChangeJobs = (ids: string[]) => Promise<readonly { readonly id: string }[]>;

export interface ChangeProgress {
  /** Jobs that matched so far. */
  readonly matched: number;
  /** Jobs that were changed; running jobs are not. */
  readonly changed: number;
}

export interface ChangeMatchingOptions {
  /** Jobs per batch, 1 to 10000. Default 1000. */
  readonly batchSize?: number | undefined;
  /** Called after each batch. */
  readonly onProgress?: ((progress: ChangeProgress) => void) | undefined;
  /** Stops before the next batch; earlier batches stay changed. */
  readonly signal?: AbortSignal | undefined;
}

export interface ChangeMatchingResult {
  /** Jobs that matched. */
  readonly matched: number;
  /** The ids of the jobs that were changed. */
  readonly changed: readonly string[];
  /** False if the signal stopped it early. */
  readonly isComplete: boolean;
}

/** Changes all jobs that match a filter, batch by batch from the oldest on. */
export async function changeMatchingJobs(
  db: Pick<Database, "run">,
  filter: JobFilter,
  change: ChangeJobs,
  { batchSize = 1000, onProgress, signal }: ChangeMatchingOptions = {},
): Promise<ChangeMatchingResult> {
  const size = checkInteger("batchSize", batchSize, 1, 10_000);
  const changed: string[] = [];
  let matched = 0;
  for await (const ids of eachJobId(db, filter, size)) {
    if (signal?.aborted) return { matched, changed, isComplete: false };
    for (const { id } of await change(ids)) changed.push(id);
    matched += ids.length;
    onProgress?.({ matched, changed: changed.length });
  }
  return { matched, changed, isComplete: true };
}
