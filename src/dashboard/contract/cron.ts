import type { Moment } from "./basics.ts";
import type { PauseInfo } from "./limits.ts";

/** GET api/cron */
export interface CronPage {
  readonly now: Moment;
  /** The soonest first; those whose pattern this server does not know come last. */
  readonly entries: readonly CronRow[];
}

export interface CronRow {
  readonly identifier: string;
  /** Null if only the database knows the entry: its pattern is in the workers' crontab. */
  readonly task: string | null;
  readonly pattern: string | null;
  readonly timeZone: string | null;
  readonly next: readonly CronRunTime[];
  readonly knownSince: Moment | null;
  readonly lastRunAt: Moment | null;
  /** A run was due more than a minute ago and no worker scheduled it. */
  readonly missedAt: Moment | null;
  readonly pause: PauseInfo | null;
  readonly canRunNow: boolean;
}

interface CronRunTime {
  readonly at: Moment;
  /** ISO 8601 with the offset of the entry's zone. */
  readonly localTime: string;
}
