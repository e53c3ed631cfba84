import type { Moment } from "./basics.ts";
import type { RunState } from "./bulk.ts";

/** GET api/audit?by=&action=&after=&limit=50 */
export interface AuditPage {
  readonly now: Moment;
  /** Newest first. */
  readonly entries: readonly AuditRow[];
  readonly next: string | null;
}

export interface AuditRow {
  readonly id: string;
  readonly at: Moment;
  readonly by: string | null;
  readonly action: string;
  /** What it was about, in words: "job 42", "dead jobs of task 'mail'". */
  readonly target: string;
  /** The page that shows it. */
  readonly link: string | null;
  readonly state: RunState;
  /** What it has changed. */
  readonly changed: number;
  readonly message: string | null;
}
