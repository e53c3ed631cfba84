import type { Pause } from "../pause.ts";

/** What is known of the worker that holds a lock. */
export interface OwnerLife {
  /** `unknown`: it sends no heartbeats, like original workers and those without crash recovery. */
  readonly life: "alive" | "silent" | "unknown" | "recovery";
  readonly lastHeartbeatAt: Date | null;
  /** Its process and host, as far as it says. */
  readonly where: string | null;
}

/** Why a job is not running, with the facts behind it. */
export type Reason =
  /** No row has this id. `neverExisted`: nor has it ever been given out. */
  | { readonly kind: "gone"; readonly neverExisted: boolean }
  /** It was cancelled; `isGone` if its row is gone. With `hasSucceeded` it had finished before it could be stopped. */
  | {
      readonly kind: "cancelled";
      readonly task: string | null;
      readonly at: Date;
      readonly by: string | null;
      readonly reason: string | null;
      readonly isGone: boolean;
      readonly hasSucceeded: boolean;
    }
  /** Its task has put it off this many times. */
  | { readonly kind: "snoozed"; readonly snoozes: number; readonly lastAt: Date }
  /** An attempt of this job, or of one that holds its queue, has used up its time and has not returned. */
  | {
      readonly kind: "overrunning";
      readonly job: { readonly id: string; readonly task: string };
      readonly by: string;
      readonly since: Date;
      readonly timeoutMs: number;
    }
  /** It is being worked on, or its worker died. */
  | { readonly kind: "locked"; readonly by: string; readonly since: Date; readonly owner: OwnerLife }
  /** No attempt is left. */
  | {
      readonly kind: "exhausted";
      readonly attempts: number;
      readonly maxAttempts: number;
      readonly lastError: string | null;
    }
  /** Its time has not come; `lastError` if it waits to be tried again. */
  | { readonly kind: "scheduled"; readonly runAt: Date; readonly attempts: number; readonly lastError: string | null }
  /** Its task, its queue, everything, or every live worker is paused. */
  | { readonly kind: "paused"; readonly pause: Pause }
  /** A limit has no place or token for it now, or is held back. */
  | {
      readonly kind: "limited";
      /** Of the task, or of the shared limit. */
      readonly limit: string;
      readonly by: "concurrency" | "rate" | "hold";
      /** The value in its payload that the limit goes by; null for a limit on everything. */
      readonly key: string | null;
      /** Where that value is in the payload; empty for a limit on everything. */
      readonly path: readonly string[];
      /** How many jobs may run, or start in a period. */
      readonly places: number | null;
      readonly periodMs: number | null;
      readonly taken: number | null;
      /** Some of those that run. */
      readonly holders: readonly { readonly id: string; readonly task: string; readonly by: string | null }[];
      /** Due jobs of the same limit that come first; counting stops at 10,001. */
      readonly ahead: number;
      /** There may be more of them than were counted. */
      readonly isCut: boolean;
      /** When the next token is due, or the hold ends. */
      readonly releaseAt: Date | null;
      readonly reason: string | null;
    }
  /** Another job of its queue is running, or a dead worker holds the queue. */
  | {
      readonly kind: "queue-held";
      readonly queue: string;
      readonly by: string;
      readonly since: Date;
      readonly owner: OwnerLife;
      readonly job: { readonly id: string; readonly task: string } | null;
    }
  /** Jobs of its queue come first. */
  | { readonly kind: "queue-order"; readonly queue: string; readonly ahead: number }
  /** No live worker has its task, as far as workers say which tasks they have. */
  | {
      readonly kind: "no-worker-for-task";
      readonly task: string;
      readonly liveWorkers: number;
      /** Tasks that live workers have. */
      readonly knownTasks: readonly string[];
    }
  /** No worker seems to be running. `liveWorkers` is null where workers do not send heartbeats. */
  | { readonly kind: "no-worker"; readonly liveWorkers: 0 | null }
  /** The row of its task is gone from the table of tasks, so no worker can know it. */
  | { readonly kind: "task-missing"; readonly taskId: number }
  /** The row of its queue is missing in the table of queues, so it cannot be locked. */
  | { readonly kind: "queue-missing"; readonly queueId: number }
  /** Workers that forbid one of these flags leave it alone. */
  | { readonly kind: "flags"; readonly flags: readonly string[] }
  /** Due jobs come first; `atLeast` if counting stopped there. */
  | { readonly kind: "jobs-ahead"; readonly ahead: number; readonly atLeast: boolean }
  /** Nothing stands in its way. */
  | { readonly kind: "unblocked"; readonly since: Date };

/** A reason, and the sentence that a person reads. */
export type ExplainedReason = Reason & { readonly message: string };
