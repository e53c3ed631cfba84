import type { Moment } from "./basics.ts";

export const outcomes = ["succeeded", "failed", "permanentlyFailed", "cancelled", "snoozed"] as const;
export type Outcome = (typeof outcomes)[number];

/** Also the query string of `api/history` and of the page `history`. */
export interface HistoryQuery {
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly outcome?: Outcome | undefined;
  readonly error?: string | undefined;
  readonly since?: Moment | undefined;
  readonly until?: Moment | undefined;
}

/** GET api/history?…&after=&limit=50 */
export interface HistoryPageAnswer {
  readonly now: Moment;
  readonly entries: readonly HistoryRow[];
  readonly next: string | null;
}

export interface HistoryRow {
  readonly id: string;
  readonly task: string;
  readonly queue: string | null;
  readonly key: string | null;
  readonly attempt: number;
  readonly maxAttempts: number | null;
  readonly outcome: Outcome;
  readonly at: Moment;
  readonly waitMs: number;
  readonly runMs: number;
  readonly worker: string;
  /** The first line. */
  readonly error: string | null;
  readonly fingerprint: string | null;
}
