import type { Moment } from "./basics.ts";
import type { LimitId, PauseKindName } from "./limits.ts";

export const jobActionNames = ["retry", "runNow", "reschedule", "cancel", "fail", "remove"] as const;
/** Actions on jobs by id; also those that can be done in bulk. */
export type JobActionName = (typeof jobActionNames)[number];

export interface RescheduleChange {
  readonly runAt?: Moment | undefined;
  readonly priority?: number | undefined;
  readonly maxAttempts?: number | undefined;
}

/** The body of POST api/actions/<name>, by name. */
export interface ActionBodies {
  /** Attempts start over, due now. Running jobs are not changed by any of these except `cancel`. At most 1,000 ids. */
  readonly retry: { readonly ids: readonly string[] };
  /** Due now. */
  readonly runNow: { readonly ids: readonly string[] };
  readonly reschedule: { readonly ids: readonly string[] } & RescheduleChange;
  readonly cancel: { readonly ids: readonly string[]; readonly reason?: string | undefined };
  readonly fail: { readonly ids: readonly string[]; readonly reason?: string | undefined };
  /** Deletes them as if they had succeeded. */
  readonly remove: { readonly ids: readonly string[] };
  readonly add: NewJob;
  readonly pause: {
    readonly target: PauseTargetBody;
    readonly until?: Moment | undefined;
    readonly reason?: string | undefined;
  };
  readonly resume: { readonly target: PauseTargetBody };
  readonly runCron: { readonly identifier: string };
  readonly setLimit: LimitId & {
    readonly key?: string | undefined;
    readonly limit?: number | undefined;
    readonly weight?: number | undefined;
  };
  readonly clearLimit: LimitId & { readonly key?: string | undefined };
  /** Frees what a worker holds that is certainly dead; its jobs run again. */
  readonly unlockWorker: { readonly worker: string };
}

/** Draining a worker is a pause of it. */
export interface PauseTargetBody {
  readonly kind: PauseKindName;
  /** Absent for `all`. */
  readonly name?: string | undefined;
}

export interface NewJob {
  readonly task: string;
  readonly payload?: unknown;
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  readonly keyMode?: "replace" | "preserve_run_at" | "unsafe_dedupe" | undefined;
  readonly runAt?: Moment | undefined;
  readonly priority?: number | undefined;
  readonly maxAttempts?: number | undefined;
  readonly flags?: readonly string[] | undefined;
  /** The job that this is a copy of: `redactedText` in the payload means its value there. */
  readonly copyOf?: string | undefined;
}

/** The answer to an action. */
export interface ActionResult {
  /** Its entry in the audit. */
  readonly audit: string;
  /** What was changed: jobs, or 1 for anything else that took effect. */
  readonly changed: number;
  /** The jobs that were changed, or the one that was added. */
  readonly ids: readonly string[];
  /** One sentence: "Retried 3 jobs; 1 is running and was left alone." */
  readonly message: string;
}
