import type { Database } from "../db/database.ts";
import { addGuardedJobs, type GuardedJob } from "../db/statements/guards.ts";
import type { SkippedBy } from "../guards.ts";
import type { Job, JobKeyMode } from "../job.ts";

/** Adds jobs, some with a guard, in one statement: all of them, or none. */
export async function writeGuardedJobs(
  database: Pick<Database, "run">,
  jobs: readonly GuardedJob[],
  { defaultMode, useNodeTime }: { readonly defaultMode: JobKeyMode; readonly useNodeTime: boolean },
): Promise<Job[]> {
  const rows = await database.run(addGuardedJobs, {
    jobs: jobs.map((job) => ({ ...job, jobKeyMode: job.jobKeyMode ?? defaultMode })),
    clock: useNodeTime ? new Date() : null,
  });
  return rows.map(({ skipped, ...row }, index) => {
    const job: Job = { ...row, task_identifier: jobs[index]!.identifier };
    return skipped === null ? job : { ...(isWhole(job) ? job : fillUp(job)), skipped: skipped as SkippedBy };
  });
}

/** Of a job that has ended, only its id, its task and when it was added are known. */
function isWhole(job: Job): boolean {
  return job.run_at !== null;
}

function fillUp(job: Job): Job {
  const times = { run_at: job.created_at, updated_at: job.created_at };
  return { ...job, ...times, priority: 0, attempts: 0, max_attempts: 25, revision: 0, is_available: false };
}
