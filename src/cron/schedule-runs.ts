import type { Database } from "../db/database.ts";
import { isRefused } from "../db/sqlstate.ts";
import { type CronRunSpec, scheduleCronJobs } from "../db/statements/schedule-cron-jobs.ts";
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
  readonly onTrouble?: ((trouble: CronTrouble) => void) | undefined;
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
    await database.run(scheduleCronJobs, { at, runs });
  } catch (error) {
    if (!isRefused(error)) throw error;
    // One bad entry must not take the others with it.
    for (const run of runs) await scheduleAlone(options, at, run);
  }
}

async function prepareRun(
  { beforeSchedule, onTrouble }: ScheduleOptions,
  request: CronRunRequest,
): Promise<CronRunSpec> {
  const { identifier, job } = request;
  if (!beforeSchedule) return toRunSpec(request, job);
  try {
    return toRunSpec(request, await beforeSchedule({ identifier, job }));
  } catch (thrown) {
    onTrouble?.({ error: toError(thrown), identifiers: [identifier] });
    return toRunSpec(request, null);
  }
}

async function scheduleAlone({ database, onTrouble }: ScheduleOptions, at: Date, run: CronRunSpec): Promise<void> {
  try {
    await database.run(scheduleCronJobs, { at, runs: [run] });
  } catch (error) {
    if (!isRefused(error)) throw error;
    onTrouble?.({ error: toError(error), identifiers: [run.identifier] });
  }
}
