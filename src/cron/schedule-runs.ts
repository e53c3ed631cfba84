import type { Database } from "../db/database.ts";
import { isRefused } from "../db/sqlstate.ts";
import { type CronRunSpec, type ScheduledCronRun, scheduleCronJobs } from "../db/statements/cron.ts";
import { toError } from "../errors.ts";
import type { CronJob, JobAndCronIdentifier } from "../events.ts";
import { type CronRunRequest, toRunSpec } from "./request-run.ts";

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

/**
 * Schedules the runs due at one moment, unless another process was first. `isRepeat`: later moments were scheduled already,
 * by a clock that was set back since.
 */
export async function scheduleRuns(
  options: ScheduleOptions,
  at: Date,
  requests: readonly CronRunRequest[],
  isRepeat = false,
): Promise<void> {
  const { database } = options;
  const runs = await Promise.all(requests.map((request) => prepareRun(options, request)));
  for (const group of groupRuns(runs)) {
    try {
      const specs = group.map(({ spec }) => spec);
      tellScheduled(options, at, group, await database.run(scheduleCronJobs, { at, runs: specs, isRepeat }));
    } catch (error) {
      if (!isRefused(error)) throw error;
      // One bad entry must not take the others with it.
      for (const run of group) await scheduleAlone(options, at, run, isRepeat);
    }
  }
}

/**
 * Runs that one statement may schedule, in order. Those with a job key stand alone: several keys in one transaction could wait for an
 * application that has added them in another order, and it for us.
 */
function groupRuns(runs: readonly PreparedRun[]): PreparedRun[][] {
  const groups: PreparedRun[][] = [];
  let isOpen = false;
  for (const run of runs) {
    const isKeyed = run.spec.job_key !== undefined;
    if (isOpen && !isKeyed) groups.at(-1)!.push(run);
    else groups.push([run]);
    isOpen = !isKeyed;
  }
  return groups;
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

async function scheduleAlone(options: ScheduleOptions, at: Date, run: PreparedRun, isRepeat: boolean): Promise<void> {
  const { database, onTrouble } = options;
  try {
    tellScheduled(options, at, [run], await database.run(scheduleCronJobs, { at, runs: [run.spec], isRepeat }));
  } catch (error) {
    if (!isRefused(error)) throw error;
    onTrouble?.({ error: toError(error), identifiers: [run.spec.identifier] });
  }
}
