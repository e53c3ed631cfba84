/** What is known of the worker that holds a lock. */
export interface OwnerLife {
  /** `unknown`: it gives no signs of life, as original workers and those without crash recovery do. */
  readonly life: "alive" | "silent" | "unknown";
  readonly lastHeartbeatAt: Date | null;
  /** Its process and host, as far as it says. */
  readonly where: string | null;
}

/** Why a job is not running, with the facts behind it. */
export type Reason =
  /** No row has this id. `neverExisted`: nor has it ever been given out. */
  | { readonly kind: "gone"; readonly neverExisted: boolean }
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
  | { readonly kind: "no-worker-for-task"; readonly task: string; readonly liveWorkers: number }
  /** Nobody seems to be working at all. `liveWorkers` is null where workers do not give signs of life. */
  | { readonly kind: "no-worker"; readonly liveWorkers: 0 | null }
  /** Workers that forbid one of these flags leave it alone. */
  | { readonly kind: "flags"; readonly flags: readonly string[] }
  /** Due jobs come first; `atLeast` if counting stopped there. */
  | { readonly kind: "jobs-ahead"; readonly ahead: number; readonly atLeast: boolean }
  /** Nothing stands in its way. */
  | { readonly kind: "ready"; readonly since: Date };

/** A reason, and the sentence that a person reads. */
export type ExplainedReason = Reason & { readonly message: string };
