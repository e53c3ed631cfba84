import type { BoundedCount, Moment } from "./basics.ts";
import type { HistoryRow } from "./history.ts";
import type { Span } from "./overview.ts";

/** GET api/errors?task=&span=1d */
export interface ErrorsPage {
  readonly now: Moment;
  readonly span: Span;
  /** The latest first. */
  readonly groups: readonly ErrorGroupRow[];
  /** Of a group, only this many of the latest failures were looked at; null if all of the span were. */
  readonly lookedAt: number | null;
}

export interface ErrorGroupRow {
  readonly fingerprint: string;
  readonly task: string;
  readonly errorClass: string;
  /** The first line of the latest. */
  readonly message: string;
  readonly count: BoundedCount;
  readonly jobs: BoundedCount;
  readonly firstAt: Moment;
  readonly lastAt: Moment;
  /** Failures per point over the span. */
  readonly spark: readonly number[];
}

/** GET api/error?fingerprint=… */
export interface ErrorDetails {
  readonly now: Moment;
  readonly group: ErrorGroupRow;
  /** The latest. */
  readonly error: string;
  /** Where it was thrown, if it is known. */
  readonly stack: string | null;
  /** The latest attempts that failed so. */
  readonly attempts: readonly HistoryRow[];
  /** Jobs that are still there and whose last attempt failed so. */
  readonly present: BoundedCount;
}
