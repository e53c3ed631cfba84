import type { Duration } from "./task-options.ts";

/*
 * The guards of an add: what happens to a new job if there was one of the same key before. A key belongs to its task and its guard. A job
 * has one guard at most, and no `jobKey` beside it.
 */

/** Of many adds in quick succession one job runs, after the last of them, with its payload. */
export interface DebounceOptions {
  /** 1 to 512 characters. */
  readonly key: string;
  /** The job runs this long after the last add: milliseconds, or a string such as `"5s"`. */
  readonly delay: Duration;
  /** But no later than this long after the first add. No limit, if left out. */
  readonly maxWait?: Duration;
}

/** At most one job is added per period. Later adds are skipped, even if that job has ended. */
export interface ThrottleOptions {
  /** 1 to 512 characters. */
  readonly key: string;
  /** Milliseconds, or a string such as `"24h"`. */
  readonly period: Duration;
}

/** What to do if a job of the key waits or runs. */
export type SingletonConflict = "skip" | "replace" | "cancelRunning";

/** Of a key at most one job waits, and at most one runs. */
export interface SingletonOptions {
  /** 1 to 512 characters. */
  readonly key: string;
  /**
   * `skip` (default): nothing is added while a job waits or runs. `replace`: a waiting job is replaced; a running one finishes, and the new
   * one starts after it. `cancelRunning`: the same, but a running job is cancelled.
   */
  readonly onConflict?: SingletonConflict;
}

export interface GuardOptions {
  /** Runs once, `delay` after the last of several adds with the same `key`, with the last payload. */
  debounce?: DebounceOptions;
  /** Adds at most one job per `period` and `key`; further adds are skipped. */
  throttle?: ThrottleOptions;
  /** Lets at most one job of the `key` wait, and one run. */
  singleton?: SingletonOptions;
}

/** Which guard kept a job from being added. */
export type SkippedBy = "throttle" | "singleton";
