import type { BoundedCount, Moment } from "./basics.ts";
import type { CronRow } from "./cron.ts";
import type { ErrorGroupRow } from "./errors.ts";
import type { HistoryRow } from "./history.ts";
import type { LimitInfo, PauseInfo } from "./limits.ts";
import type { Series, Span } from "./overview.ts";

export interface TaskRow {
  readonly task: string;
  readonly running: BoundedCount;
  readonly ready: BoundedCount;
  readonly later: BoundedCount;
  readonly dead: BoundedCount;
  /** Attempts that ended, per minute over the span. */
  readonly perMinute: number | null;
  readonly failureRate: number | null;
  readonly waitP95: number | null;
  readonly runP95: number | null;
  readonly oldestMs: number | null;
  /** Attempts per point, about 20 points over the span; empty if nothing was recorded. */
  readonly spark: readonly (number | null)[];
  readonly pause: PauseInfo | null;
  /** How many live workers have it; null if they do not say. */
  readonly workers: number | null;
  readonly isFallingBehind: boolean;
}

/** GET api/tasks?span=1h */
export interface TasksPage {
  readonly now: Moment;
  readonly span: Span;
  readonly tasks: readonly TaskRow[];
}

/** GET api/task?name=…&span=1h (names have slashes, which proxies do not leave alone in paths) */
export interface TaskDetails {
  readonly now: Moment;
  readonly span: Span;
  readonly row: TaskRow;
  readonly series: Series;
  readonly limits: readonly LimitInfo[];
  readonly errors: readonly ErrorGroupRow[];
  readonly failures: readonly HistoryRow[];
  readonly cron: readonly CronRow[];
}
