import type { Database } from "../db/database.ts";
import { readRollup, type TaskFigures } from "../db/statements/metrics.ts";
import { type OldestJobRow, oldestWaitingJob } from "../db/statements/stats.ts";

export interface JobFigures {
  /** By task; counting stops at 10,000 waiting and scheduled jobs of a task. */
  readonly tasks: readonly TaskFigures[];
  /** True if running and dead jobs are scaled up from a sample. */
  readonly isSampled: boolean;
  /** How old the figures by task are, in milliseconds; null if nobody has collected any yet. */
  readonly ageMs: number | null;
  /** The waiting job that has been due longest, now. */
  readonly oldestWaiting: OldestJobRow | null;
}

/** As a worker's metrics ask, so that all share what one of them collects. */
const asked = { maxAgeMs: 5_000, cap: 10_000, maxTasks: 200, maxPages: 1_024 };
/** Who holds back vacuum is for the workers' logs: a caller that shows figures must not be the one who is told. */
const warnAfterSeconds = 1e12;
const reader = "figures";

/** Figures about the whole table at a bounded cost. */
export async function getJobFigures(db: Pick<Database, "run">): Promise<JobFigures> {
  const [row] = await db.run(readRollup, { ...asked, reader, warnAfterSeconds });
  const [oldest] = await db.run(oldestWaitingJob, {});
  const { tasks = [], isSampled = false } = row?.data ?? {};
  return { tasks, isSampled, ageMs: row?.age_ms ?? null, oldestWaiting: oldest ?? null };
}
