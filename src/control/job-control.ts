import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { cancelJobs } from "../db/statements/control.ts";
import { JobSpecError } from "../errors.ts";
import type { DbJob } from "../job.ts";
import { checkJobIds, type JobId } from "../job-checks.ts";

export interface CancelOptions {
  /** Why. Shown by the job's `abortSignal`, by `hathi why` and in the logs. */
  readonly reason?: string;
  /** Who cancels. If left out, the database role. */
  readonly by?: string | undefined;
}

/** The cancelled jobs, as they were before. */
export interface CancelResult {
  /** Jobs that waited. They are deleted. */
  readonly cancelled: readonly DbJob[];
  /** Jobs that run. Their signal aborts, and they count as cancelled unless they succeed. None of them runs again. */
  readonly stopping: readonly DbJob[];
}

export interface JobControl<Filter> {
  /**
   * Cancels jobs by id or by filter. A waiting job is deleted at once. The `abortSignal` of a running job aborts, in whichever process it
   * runs; if it still succeeds it counts as done, otherwise as cancelled. Either way it never runs again. Permanently failed jobs are
   * not changed.
   */
  cancelJobs(jobs: readonly JobId[] | Filter, options?: CancelOptions): Promise<CancelResult>;
}

export interface JobControlOptions<Filter> {
  readonly database: Pick<Database, "run">;
  /** The ids of jobs that match, some at a time. */
  readonly findIds: (filter: Filter) => AsyncIterable<readonly string[]>;
}

export function makeJobControl<Filter extends object>(options: JobControlOptions<Filter>): JobControl<Filter> {
  const { database, findIds } = options;
  return {
    async cancelJobs(jobs, { reason, by } = {}) {
      for (const [name, value] of Object.entries({ reason, by })) {
        if (value !== undefined && typeof value !== "string") {
          throw new JobSpecError(`'${name}' must be a string, got ${inspect(value)}.`);
        }
      }
      const rows: DbJob[] = [];
      for await (const ids of isIds(jobs) ? [checkJobIds(jobs)] : findIds(checkFilter(jobs))) {
        rows.push(...(await database.run(cancelJobs, { ids, reason: reason ?? null, by: by ?? null })));
      }
      return {
        cancelled: rows.filter(({ locked_at }) => locked_at === null),
        stopping: rows.filter(({ locked_at }) => locked_at !== null),
      };
    },
  };
}

function isIds(jobs: unknown): jobs is readonly JobId[] {
  return Array.isArray(jobs);
}

/** A filter that says nothing would mean every job. */
function checkFilter<Filter>(filter: Filter): Filter {
  const isSaid =
    typeof filter === "object" && filter !== null && Object.values(filter).some((value) => value !== undefined);
  if (isSaid) return filter;
  throw new JobSpecError(
    `Say which jobs to cancel: an array of ids, or a filter such as { task: 'mail' }; got ${inspect(filter)}.`,
  );
}
