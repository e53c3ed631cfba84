import type { Database } from "../db/database.ts";
import { readAttemptsByTask, readTimesByStep } from "../db/statements/metrics.ts";
import { JobSpecError } from "../errors.ts";
import { type Percentiles, percentiles } from "./job-times.ts";

export interface JobTrendsOptions {
  /** How far to look back, in milliseconds; an hour if left out. */
  readonly sinceMs?: number | undefined;
  /** The length of a step in milliseconds, a minute at least; a minute if left out. Minutes are kept for three hours, hours for three days. */
  readonly stepMs?: number | undefined;
  /** Only this task. */
  readonly task?: string | undefined;
}

export interface TrendPoint {
  /** When the step begins. */
  readonly at: Date;
  readonly succeeded: number;
  readonly failed: number;
  readonly wait: Percentiles;
  readonly run: Percentiles;
}

export interface JobTrends {
  readonly stepMs: number;
  /** Oldest first; steps in which nothing was recorded are left out. */
  readonly points: readonly TrendPoint[];
  /** Attempts that ended, by task and step; `at` is when a step begins. */
  readonly tasks: readonly {
    readonly task: string;
    readonly at: Date;
    readonly attempts: number;
    readonly failed: number;
  }[];
}

/** How jobs fared over time, as workers with metrics have recorded it. */
export async function getJobTrends(
  db: Pick<Database, "run">,
  { sinceMs = 3_600_000, stepMs = 60_000, task }: JobTrendsOptions = {},
): Promise<JobTrends> {
  if (!(stepMs >= 60_000)) throw new JobSpecError(`'stepMs' must be a minute (60000) at least, got ${String(stepMs)}.`);
  const params = { seconds: sinceMs / 1000, stepSeconds: stepMs / 1000, task: task ?? null };
  const points = await db.run(readTimesByStep, params);
  return {
    stepMs,
    points: points.map(({ at, succeeded, failed, waits, runs }) => ({
      at,
      succeeded,
      failed,
      wait: percentiles(waits),
      run: percentiles(runs),
    })),
    tasks: await db.run(readAttemptsByTask, params),
  };
}
