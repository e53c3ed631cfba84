import type { Database } from "../db/database.ts";
import { isUnreachable } from "../db/sqlstate.ts";
import { addJob, type NewJob, replaceJob } from "../db/statements/add.ts";
import type { AddJobFunction, DbJob, Job } from "../job.ts";
import { Coalescer } from "../util/coalescer.ts";
import { writeGuardedJobs } from "./add-guarded.ts";
import { writeJobs } from "./add-jobs.ts";
import { type CheckedSpec, toNewJob } from "./job-spec.ts";

export interface AddOptions {
  /** The time of jobs that name none is this process's, not the database's. */
  readonly useNodeTime: boolean;
}

type Checked = NewJob & CheckedSpec;
type Write = (job: Checked) => Promise<Job>;

/** Adds jobs one by one, each with its own statement. */
export function makeAddJob(database: Pick<Database, "run">, options: AddOptions): AddJobFunction {
  return checkThen(writeSingly(database, options), options);
}

/** Adds jobs so that those asked for at the same time share a statement; each caller gets its own job, or its own error. */
export function makeSharedAddJob(database: Pick<Database, "run">, options: AddOptions): AddJobFunction {
  const single = writeSingly(database, options);
  const shared = shareWrites(database, single);
  // An add with a key may have to wait for another transaction; other adds should not wait with it.
  return checkThen((job) => (job.jobKey === null && job.guard === null ? shared.add(job) : single(job)), options);
}

function checkThen(write: Write, { useNodeTime }: AddOptions): AddJobFunction {
  return async (identifier, payload, spec) => await write(toNewJob(identifier, payload, spec ?? {}, useNodeTime));
}

function writeSingly(database: Pick<Database, "run">, { useNodeTime }: AddOptions): Write {
  return async (job) => {
    if (job.guard) return (await writeGuardedJobs(database, [job], { defaultMode: "replace", useNodeTime }))[0]!;
    const [row] = await database.run(job.cancelRunning ? replaceJob : addJob, job);
    return { ...(row as DbJob), task_identifier: job.identifier };
  };
}

/** Beyond this many rows a statement is no cheaper per row, and its first caller only waits longer. */
const maxShared = 1_000;

function shareWrites(database: Pick<Database, "run">, single: Write): Coalescer<Checked, Job> {
  return new Coalescer<Checked, Job>(async (jobs) => {
    if (jobs.length === 1) return [single(jobs[0]!)];
    try {
      return await writeJobs(database, jobs, "replace");
    } catch (error) {
      // If the connection broke, it is unknown whether the jobs were added; adding them again could double them.
      if (isUnreachable(error)) throw error;
      return jobs.map(single);
    }
  }, maxShared);
}
