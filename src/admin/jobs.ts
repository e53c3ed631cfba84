import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { completeByHand } from "../db/statements/complete-by-hand.ts";
import { failByHand } from "../db/statements/fail-by-hand.ts";
import { forceUnlock } from "../db/statements/force-unlock.ts";
import { removeJob } from "../db/statements/remove-job.ts";
import { rescheduleJobs } from "../db/statements/reschedule-jobs.ts";
import { JobSpecError } from "../errors.ts";
import type { DbJob } from "../job.ts";
import { checkReschedule, type RescheduleOptions } from "./reschedule-options.ts";

/** Changes jobs by hand. Jobs that run are left alone, so fewer rows than asked for may come back. */
export interface JobAdmin {
  /** Deletes the job with this key; one that runs loses its key and is not tried again. Null if there is none. */
  removeJob(jobKey: string): Promise<DbJob | null>;
  /** Deletes jobs as if they had succeeded. */
  completeJobs(jobIds: readonly string[]): Promise<DbJob[]>;
  /** Uses up all attempts of jobs; without a reason they are marked as failed by hand. */
  permanentlyFailJobs(jobIds: readonly string[], reason?: string): Promise<DbJob[]>;
  /** Changes what is given and keeps the rest; zero is a value. */
  rescheduleJobs(jobIds: readonly string[], options: RescheduleOptions): Promise<DbJob[]>;
  /** Frees at once what these pools hold. Only for pools that are certainly dead: their jobs will run again. */
  forceUnlockWorkers(poolIds: readonly string[]): Promise<void>;
}

export function makeJobAdmin(database: Pick<Database, "run">): JobAdmin {
  return {
    async removeJob(jobKey) {
      if (typeof jobKey !== "string") throw new JobSpecError(`A job key must be a text, got ${inspect(jobKey)}.`);
      const [row] = await database.run(removeJob, { jobKey });
      return row ?? null;
    },
    completeJobs: async (jobIds) => await database.run(completeByHand, { ids: checkIds(jobIds) }),
    permanentlyFailJobs: async (jobIds, reason) =>
      await database.run(failByHand, { ids: checkIds(jobIds), reason: reason ?? null }),
    rescheduleJobs: async (jobIds, options) =>
      await database.run(rescheduleJobs, { ids: checkIds(jobIds), ...checkReschedule(options ?? {}) }),
    async forceUnlockWorkers(poolIds) {
      if (!Array.isArray(poolIds) || !poolIds.every((id) => typeof id === "string")) {
        throw new JobSpecError(`Ids of workers must be an array of texts, got ${inspect(poolIds)}.`);
      }
      await database.run(forceUnlock, { poolIds });
    },
  };
}

const largestBigint = 2n ** 63n - 1n;

function checkIds(ids: readonly unknown[]): string[] {
  if (!Array.isArray(ids)) throw new JobSpecError(`Job ids must be an array, got ${inspect(ids)}.`);
  return ids.map((id) => {
    const text = String(id);
    if (/^\d+$/.test(text) && BigInt(text) <= largestBigint) return text;
    throw new JobSpecError(`A job id must be a whole number such as '42', got ${inspect(id)}.`);
  });
}
