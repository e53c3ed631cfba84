import type { JobActionName, RescheduleChange } from "./actions.ts";
import type { Moment } from "./basics.ts";
import type { JobQuery } from "./jobs.ts";

/** An action on every job that matches. */
export interface BulkRequest extends RescheduleChange {
  readonly action: JobActionName;
  readonly filter: JobQuery;
  readonly reason?: string | undefined;
  /** From the preview: jobs added later are left alone. */
  readonly upTo: string;
}

/** POST api/bulk/preview. Ask again with `cursor` until it is complete; the count grows. */
export interface BulkPreviewRequest {
  readonly action: JobActionName;
  readonly filter: JobQuery;
  readonly upTo?: string | undefined;
  readonly cursor?: string | undefined;
  /** The `count` of the answer before. */
  readonly count?: number | undefined;
}

export interface BulkPreview {
  /** How many jobs match so far. */
  readonly count: number;
  readonly isComplete: boolean;
  readonly cursor: string | null;
  readonly upTo: string;
  /** The filter in words: "dead jobs of task 'mail'". */
  readonly target: string;
}

export type RunState = "running" | "done" | "stopped" | "failed" | "interrupted";

/** POST api/bulk (202) with a `BulkRequest`, GET api/bulk?id=…, POST api/bulk/stop with `{ id }`. */
export interface BulkRun {
  /** Its entry in the audit. */
  readonly id: string;
  readonly action: JobActionName;
  readonly target: string;
  readonly by: string | null;
  readonly state: RunState;
  readonly startedAt: Moment;
  readonly finishedAt: Moment | null;
  readonly matched: number;
  readonly changed: number;
  readonly isStopping: boolean;
  readonly message: string | null;
}
