import type { Database } from "../db/database.ts";
import { isRefused } from "../db/sqlstate.ts";
import { type CronRunSpec, type ScheduledCronRun, scheduleCronJobs } from "../db/statements/schedule-cron-jobs.ts";
import { toError } from "../errors.ts";
import type { CronJob, JobAndCronIdentifier } from "../events.ts";
import { type CronRunRequest, toRunSpec } from "./cron-job.ts";

/** Something went wrong. With `retryInMs` the scheduler starts over then; with `identifiers`, these entries lost one run. */
export interface CronTrouble {
  readonly error: Error;
  readonly retryInMs?: number;
  readonly identifiers?: readonly string[];
}

export interface ScheduleOptions {
  readonly database: Database;
  /**
   * May change the job of a run, or leave it out by giving null; the run then counts as done. Asked in every process that
   * finds the run due, though only one of them will schedule it.
   */
  readonly beforeSchedule?: ((run: JobAndCronIdentifier) => Promise<CronJob | null>) | undefined;
  /** Told of each job that this process added, of all that wanted to; `job` is what `beforeSchedule` made of it. */
  readonly onScheduled?: ((run: JobAndCronIdentifier, jobId: string, at: Date) => void) | undefined;
  readonly onTrouble?: ((trouble: CronTrouble) => void) | undefined;
}

/** A run as it goes to the database, and the job that it adds, if any. */
interface PreparedRun {
  readonly job: CronJob | null;
  readonly spec: CronRunSpec;
}

/** Schedules the runs due at one moment, unless another process was first. */
export async function scheduleRuns(
  options: ScheduleOptions,
  at: Date,
  requests: readonly CronRunRequest[],
): Promise<void> {
  const { database } = options;
  const runs = await Promise.all(requests.map((request) => prepareRun(options, request)));
  try {
    tellScheduled(options, at, runs, await database.run(scheduleCronJobs, { at, runs: runs.map(({ spec }) => spec) }));
  } catch (error) {
    if (!isRefused(error)) throw error;
    // One bad entry must not take the others with it.
    for (const run of runs) await scheduleAlone(options, at, run);
  }
}

async function prepareRun(
  { beforeSchedule, onTrouble }: ScheduleOptions,
  request: CronRunRequest,
): Promise<PreparedRun> {
  const { identifier, job } = request;
  if (!beforeSchedule) return { job, spec: toRunSpec(request, job) };
  try {
    const wanted = await beforeSchedule({ identifier, job });
    return { job: wanted, spec: toRunSpec(request, wanted) };
  } catch (thrown) {
    onTrouble?.({ error: toError(thrown), identifiers: [identifier] });
    return { job: null, spec: toRunSpec(request, null) };
  }
}

function tellScheduled(
  { onScheduled }: ScheduleOptions,
  at: Date,
  runs: readonly PreparedRun[],
  scheduled: readonly ScheduledCronRun[],
): void {
  if (!onScheduled) return;
  for (const { identifier, job_id } of scheduled) {
    const run = runs.find(({ spec }) => spec.identifier === identifier);
    if (run?.job && job_id !== null) onScheduled({ identifier, job: run.job }, job_id, at);
  }
}

async function scheduleAlone(options: ScheduleOptions, at: Date, run: PreparedRun): Promise<void> {
  const { database, onTrouble } = options;
  try {
    tellScheduled(options, at, [run], await database.run(scheduleCronJobs, { at, runs: [run.spec] }));
  } catch (error) {
    if (!isRefused(error)) throw error;
    onTrouble?.({ error: toError(error), identifiers: [run.spec.identifier] });
  }
}
