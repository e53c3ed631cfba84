import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { completeByHand, failByHand, forceUnlock, removeJob, rescheduleJobs } from "../db/statements/admin.ts";
import { JobSpecError } from "../errors.ts";
import type { DbJob } from "../job.ts";
import { checkJobIds, type JobId } from "../job-checks.ts";
import {
  type ChangeJobs,
  type ChangeMatchingOptions,
  type ChangeMatchingResult,
  changeMatchingJobs,
} from "./change-matching.ts";
import type { JobFilter } from "./job-filter.ts";
import { checkReschedule, type RescheduleOptions } from "./reschedule-options.ts";

/** Changes jobs by hand. Running jobs are not changed, so fewer rows than ids may be returned. */
export interface JobAdmin {
  /** Deletes the job with this key and returns it, or null if there is none. A running job finishes, but is not tried again. */
  removeJob(jobKey: string): Promise<DbJob | null>;
  /** Deletes jobs as if they had succeeded. Running jobs are not changed; the deleted jobs are returned. */
  completeJobs(jobIds: readonly JobId[]): Promise<DbJob[]>;
  /** Marks jobs as permanently failed, with `reason` as their last error. Running jobs are not changed. */
  permanentlyFailJobs(jobIds: readonly JobId[], reason?: string): Promise<DbJob[]>;
  /** Changes when, how urgently and how often jobs are tried. Options left out keep their value. Running jobs are not changed. */
  rescheduleJobs(jobIds: readonly JobId[], options: RescheduleOptions): Promise<DbJob[]>;
  /** Resets the attempts of jobs, including permanently failed ones, and makes them due now. */
  retryJobs(jobIds: readonly JobId[]): Promise<DbJob[]>;
  /** Changes all jobs that match a filter, in batches. The callback gets the ids of each batch. */
  changeMatchingJobs(
    filter: JobFilter,
    change: ChangeJobs,
    options?: ChangeMatchingOptions,
  ): Promise<ChangeMatchingResult>;
  /** Unlocks the jobs and queues of these workers at once. Use it only for workers that are certainly dead: their jobs run again. */
  forceUnlockWorkers(poolIds: readonly string[]): Promise<void>;
}

export function makeJobAdmin(database: Pick<Database, "run">): JobAdmin {
  const reschedule: JobAdmin["rescheduleJobs"] = async (jobIds, options) =>
    await database.run(rescheduleJobs, { ids: checkJobIds(jobIds), ...checkReschedule(options ?? {}) });
  return {
    async removeJob(jobKey) {
      if (typeof jobKey !== "string") throw new JobSpecError(`A job key must be a string, got ${inspect(jobKey)}.`);
      const [row] = await database.run(removeJob, { jobKey });
      return row ?? null;
    },
    completeJobs: async (jobIds) => await database.run(completeByHand, { ids: checkJobIds(jobIds) }),
    permanentlyFailJobs: async (jobIds, reason) =>
      await database.run(failByHand, { ids: checkJobIds(jobIds), reason: reason ?? null }),
    rescheduleJobs: reschedule,
    retryJobs: (jobIds) => reschedule(jobIds, { runAt: "now", attempts: 0 }),
    changeMatchingJobs: (filter, change, options) => changeMatchingJobs(database, filter, change, options),
    async forceUnlockWorkers(poolIds) {
      if (!Array.isArray(poolIds) || !poolIds.every((id) => typeof id === "string")) {
        throw new JobSpecError(`Worker ids must be an array of strings, got ${inspect(poolIds)}.`);
      }
      await database.run(forceUnlock, { poolIds });
    },
  };
}
