import type { JobActionName } from "./actions.ts";
import type { BoundedCount, Moment } from "./basics.ts";
import type { Outcome } from "./history.ts";
import type { PauseInfo } from "./limits.ts";

export const jobStates = ["waiting", "scheduled", "running", "dead"] as const;
export type JobStateName = (typeof jobStates)[number];

/** Also the query string of `api/jobs` and of the page `jobs`. */
export interface JobQuery {
  readonly state?: JobStateName | undefined;
  readonly task?: string | undefined;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  /** In the payload, the key, the task's name or the last error. */
  readonly search?: string | undefined;
  /** A fingerprint of `api/errors`: jobs whose last attempt failed like this. */
  readonly error?: string | undefined;
  /** Added at this moment or later. */
  readonly since?: Moment | undefined;
  /** Added before this moment. */
  readonly until?: Moment | undefined;
}

/** GET api/jobs?…&after=&limit=50 */
export interface JobsPage {
  readonly now: Moment;
  /** Newest first. */
  readonly jobs: readonly JobRow[];
  /** `after` of the next page; null on the last one. With few or no jobs and a `next`, the search is not over: ask again. */
  readonly next: string | null;
  /** Jobs looked at for this page. */
  readonly lookedAt: number;
}

export interface JobRow {
  readonly id: string;
  readonly state: JobStateName;
  readonly task: string;
  readonly queue: string | null;
  readonly key: string | null;
  readonly priority: number;
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly runAt: Moment;
  readonly createdAt: Moment;
  readonly updatedAt: Moment;
  readonly lockedAt: Moment | null;
  readonly lockedBy: string | null;
  /** The first line of it. */
  readonly lastError: string | null;
  readonly flags: readonly string[];
  readonly isCancelled: boolean;
  readonly snoozes: number;
  readonly pause: PauseInfo | null;
  readonly progress: Progress | null;
}

export interface Progress {
  /** From 0 to 100, if the task says how far it is. */
  readonly percent: number | null;
  readonly message: string | null;
  readonly at: Moment;
}

/** GET api/job?id=42. A job that is gone is answered as far as history tells; 404 if nothing is known. */
export interface JobDetails {
  readonly now: Moment;
  readonly id: string;
  readonly state: JobStateName | "finished";
  /** How it ended, if it is gone. */
  readonly outcome: Outcome | null;
  readonly finishedAt: Moment | null;
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  /** Null where it is not known any more. */
  readonly details: Omit<JobRow, "id" | "state" | "task" | "queue" | "key"> | null;
  /** The whole last error with its stack. */
  readonly lastError: string | null;
  /** What is hidden is `redactedText`. Absent if it is not known or too large. */
  readonly payload?: unknown;
  readonly payloadBytes: number | null;
  readonly result?: unknown;
  /** Why it is where it is, most decisive first. */
  readonly why: readonly Why[];
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** Jobs whose task added it, through the helpers, while their history was kept; at most 20. */
  readonly addedBy: readonly LinkedJob[];
  /** Jobs that its task has added; at most 20. */
  readonly added: readonly LinkedJob[];
  /** It has added more. */
  readonly hasAddedMore: boolean;
  readonly trace: { readonly traceId: string; readonly spanId: string } | null;
  /** Other jobs of its trace; newest first. */
  readonly related: readonly RelatedJob[];
  /** What can be done with it as it is now; of that, the session may permit less. */
  readonly actions: readonly JobActionName[];
}

/** Stands for each value that is hidden. Sent back in the payload of a copy, it means the value of the original. */
export const redactedText = "•••";

export interface Why {
  readonly kind: string;
  /** One or two sentences. */
  readonly message: string;
  /** Where to look, as a page's address. */
  readonly link: string | null;
}

export interface TimelineEntry {
  readonly at: Moment;
  readonly kind: "added" | "started" | Outcome | "due" | "locked" | "action";
  /** One line. */
  readonly message: string;
  readonly attempt: number | null;
  readonly worker: string | null;
  readonly waitMs: number | null;
  readonly runMs: number | null;
  readonly error: string | null;
  readonly fingerprint: string | null;
  /** Where it was thrown: the frames alone. */
  readonly stack: string | null;
}

/** A job that added another one, or was added by it. */
export interface LinkedJob {
  readonly id: string;
  /** Null if nothing is known of it any more. */
  readonly task: string | null;
  /** Where it is, or how it ended. */
  readonly state: JobStateName | Outcome | null;
}

/** A job that was added in the same trace: by the same request, say, or the same run of a task. */
export interface RelatedJob {
  readonly id: string;
  readonly added: "earlier" | "later";
  readonly task: string;
  readonly state: JobStateName | "finished";
}

/** GET api/count?… (a `JobQuery`) */
export interface CountAnswer extends BoundedCount {}

/** GET api/find?q=…: a job id, a key, or a part of a task's or queue's name. */
export interface FindAnswer {
  readonly jobs: readonly JobRow[];
  readonly tasks: readonly string[];
  readonly queues: readonly string[];
}
