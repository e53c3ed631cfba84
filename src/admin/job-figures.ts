import type { Database } from "../db/database.ts";
import { type LimitFigures, peekRollup, readRollup, type TaskFigures } from "../db/statements/metrics.ts";
import { type OldestJobRow, oldestWaitingJob } from "../db/statements/stats.ts";

export interface JobFigures {
  /** By task; counting stops at 10,000 waiting and scheduled jobs of a task. */
  readonly tasks: readonly TaskFigures[];
  /** Of the tasks that have a limit, by its name. */
  readonly limits: readonly LimitFigures[];
  /** True if running and dead jobs are scaled up from a sample. */
  readonly isSampled: boolean;
  /** How old the figures by task are, in milliseconds; null if none were collected yet. */
  readonly ageMs: number | null;
  /** The waiting job that has been due longest, now. */
  readonly oldestWaiting: OldestJobRow | null;
}

/** As a worker's metrics ask, so that all share what one of them collects. */
const asked = { maxAgeMs: 5_000, cap: 10_000, maxTasks: 200, maxPages: 1_024 };
/** Workers log who holds back vacuum. A caller that only shows figures must not use up that log line. */
const warnAfterSeconds = 1e12;
const reader = "figures";

export interface JobFiguresOptions {
  /** False: only what was collected before, however old it is. Default true. */
  readonly collect?: boolean | undefined;
}

/** Figures about the whole table at a bounded cost. */
export async function getJobFigures(
  db: Pick<Database, "run">,
  { collect = true }: JobFiguresOptions = {},
): Promise<JobFigures> {
  const [row] = collect
    ? await db.run(readRollup, { ...asked, reader, warnAfterSeconds })
    : await db.run(peekRollup, {});
  const [oldest] = await db.run(oldestWaitingJob, {});
  const { tasks = [], limits = [], isSampled = false } = row?.data ?? {};
  return { tasks, limits, isSampled, ageMs: row?.age_ms ?? null, oldestWaiting: oldest ?? null };
}
