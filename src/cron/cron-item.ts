/** Marks an item that went through a parser of this library. */
export const $$isParsed: unique symbol = Symbol("isParsed");

/** A moment as a matcher sees it: the wall clock of the item's time zone (UTC unless the item names another). */
export interface TimestampDigest {
  min: number;
  hour: number;
  date: number;
  month: number;
  dow: number;
}

export interface ParsedCronMatch {
  minutes: number[];
  hours: number[];
  dates: number[];
  months: number[];
  dows: number[];
}

/** Says whether an item runs in the given minute. */
export type CronMatcher = (digest: TimestampDigest) => boolean;

/** The matcher made from a pattern; `parsedCronMatch` lists what it matches. */
export type PatternMatcher = CronMatcher & { readonly parsedCronMatch: ParsedCronMatch };

/** What happens to a local time that a clock change skips or repeats. */
export interface DstPolicy {
  /** `run`: once, at the moment of the change. `skip`: not that day. */
  readonly skipped?: "run" | "skip" | undefined;
  readonly repeated?: "first" | "last" | "both" | undefined;
}

export interface CronItemOptions {
  /** How long (in milliseconds) to back-fill. */
  backfillPeriod?: number | undefined;
  maxAttempts?: number | undefined;
  queueName?: string | undefined;
  priority?: number | undefined;
  jobKey?: string | undefined;
  jobKeyMode?: "replace" | "preserve_run_at" | undefined;
  /** An IANA name, such as `Europe/Berlin`. */
  timeZone?: string | undefined;
  /** Without it, an entry for every hour follows the passing of time; any other runs a skipped or repeated time once. */
  dst?: DstPolicy | undefined;
  /**
   * Which of the runs that no process was there to schedule are caught up on, within `backfillPeriod` if that is set.
   * Without it: all within `backfillPeriod`, plus all of a time this process itself slept through.
   */
  missed?: "all" | "last" | "none" | undefined;
  /** `skip`: no new job while the previous one of this item still waits or runs. */
  overlap?: "allow" | "skip" | undefined;
  flags?: string[] | undefined;
  /** Seconds of each matching minute, written like a crontab field (`0,30`). Without it: second 0. */
  seconds?: string | undefined;
}

export interface ParsedCronItemOptions extends Omit<CronItemOptions, "seconds"> {
  backfillPeriod: number;
  seconds?: number[] | undefined;
}

export type CronPayload = { [key: string]: unknown };

/** A recurring job, as people write it. */
export interface CronItem {
  task: string;
  /** A pattern such as `30 4 * * 1`, or a function that says whether a minute matches. */
  match: string | CronMatcher;
  /** The older name of `match`; an item has one of them (see {@link PatternCronItem}). */
  pattern?: never;
  options?: CronItemOptions | undefined;
  /** Merged into each job's payload. */
  payload?: CronPayload | undefined;
  /** Names the item in the database; the task's name unless given. Must be unique among the items. */
  identifier?: string | undefined;
}

/** The older spelling, with `pattern` in place of `match`. */
export type PatternCronItem = Omit<CronItem, "match" | "pattern"> & { match?: never; pattern: string };

/** A recurring job, checked and ready to schedule. Opaque: made by the parsers, never by hand. */
export interface ParsedCronItem {
  [$$isParsed]: true;
  match: CronMatcher;
  task: string;
  options: ParsedCronItemOptions;
  payload: CronPayload | null;
  identifier: string;
}
