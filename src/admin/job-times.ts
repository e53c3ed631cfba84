import type { Database } from "../db/database.ts";
import { readTimes } from "../db/statements/metrics.ts";
import { quantileMs } from "../util/log-bins.ts";

/** Milliseconds that half, 95 % and 99 % of the jobs did not exceed; null if there was none. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** How the jobs of a task fared. */
export interface TaskTimes {
  readonly task: string;
  /** Attempts that succeeded or failed. */
  readonly attempts: number;
  readonly failed: number;
  readonly permanentlyFailed: number;
  /** Failed attempts among all, from 0 to 1. */
  readonly failureRate: number;
  /** From when a job was due to its start. */
  readonly wait: Percentiles;
  readonly run: Percentiles;
}

export interface JobTimesOptions {
  /** How far to look back, in milliseconds; an hour if left out. */
  readonly sinceMs?: number | undefined;
}

/** How long jobs waited and ran, and how often they failed, as workers with metrics have recorded it. */
export async function getJobTimes(db: Database, { sinceMs = 3_600_000 }: JobTimesOptions = {}): Promise<TaskTimes[]> {
  const rows = await db.run(readTimes, { seconds: sinceMs / 1000 });
  return rows.map(({ task, waits, runs, succeeded, failed, permanently_failed: permanentlyFailed }) => {
    const attempts = succeeded + failed;
    const failureRate = attempts === 0 ? 0 : failed / attempts;
    return { task, attempts, failed, permanentlyFailed, failureRate, wait: percentiles(waits), run: percentiles(runs) };
  });
}

export function percentiles(bins: readonly number[]): Percentiles {
  const of = (share: number): number | null => quantileMs(bins, share) ?? null;
  return { p50: of(0.5), p95: of(0.95), p99: of(0.99) };
}
