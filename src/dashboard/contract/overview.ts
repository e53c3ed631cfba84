import type { BoundedCount, Moment } from "./basics.ts";
import type { PauseInfo } from "./limits.ts";
import type { TaskRow } from "./tasks.ts";

export const spans = ["15m", "1h", "3h", "1d", "3d", "30d"] as const;
export type Span = (typeof spans)[number];

/** GET api/overview?span=1h */
export interface Overview {
  readonly now: Moment;
  readonly span: Span;
  /** Most urgent first; empty if all is well. */
  readonly warnings: readonly Warning[];
  /** "All good. 1,204 jobs in the last minute …" without warnings. */
  readonly summary: string;
  readonly figures: Figures;
  readonly series: Series;
  readonly tasks: readonly TaskRow[];
  readonly workers: { readonly alive: number; readonly silent: number; readonly slots: number; readonly busy: number };
  readonly counts: JobCounts;
  /** The pauses in force. */
  readonly pauses: readonly PauseInfo[];
  /** When workers that run now were started; the latest, oldest first. */
  readonly starts: readonly StartMark[];
}

/** Workers of one version that started together: a deploy or a restart. */
export interface StartMark {
  /** The first of them, in seconds since 1970. */
  readonly at: number;
  /** Of the app; null if its workers do not say. */
  readonly version: string | null;
  readonly workers: number;
}

export interface Warning {
  readonly severity: "warning" | "problem";
  /** A stable name, such as `falling-behind` or `oldest transaction`. */
  readonly kind: string;
  /** One sentence. */
  readonly message: string;
  /** Where to look, as a page's address such as `jobs?state=dead`. */
  readonly link: string | null;
}

/** Of the last minute that is complete; null if it is not known. */
export interface Figures {
  readonly finishedPerMinute: number | null;
  /** From 0 to 1, of the attempts in the span. */
  readonly failureRate: number | null;
  readonly waitP95: number | null;
  readonly runP95: number | null;
  /** How long the oldest job that could run has been due; null if there is none. */
  readonly oldestMs: number | null;
  readonly oldestId: string | null;
}

export interface JobCounts {
  readonly waiting: BoundedCount;
  readonly scheduled: BoundedCount;
  readonly running: BoundedCount;
  readonly dead: BoundedCount;
}

/** Columns of the same length. Null where nothing was recorded. */
export interface Series {
  /** From the start of one point to that of the next. */
  readonly stepMs: number;
  /** Starts of the points, in seconds since 1970 (as uPlot wants them). */
  readonly at: readonly number[];
  readonly succeeded: readonly (number | null)[];
  readonly failed: readonly (number | null)[];
  readonly waitP50: readonly (number | null)[];
  readonly waitP95: readonly (number | null)[];
  readonly waitP99: readonly (number | null)[];
  readonly runP50: readonly (number | null)[];
  readonly runP95: readonly (number | null)[];
  readonly runP99: readonly (number | null)[];
}
