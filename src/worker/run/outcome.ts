import { errorText } from "../../error-text.ts";
import { toError } from "../../errors.ts";
import type { Job } from "../../job.ts";

interface Ended<Kind extends string> {
  readonly kind: Kind;
  readonly job: Job;
}

interface EndedByError<Kind extends string> extends Ended<Kind> {
  readonly error: Error;
  /** What becomes `last_error`: made once, here, since reading an error may throw. */
  readonly text: string;
}

interface Succeeded extends Ended<"succeeded"> {
  /** What is kept as the job's result, as JSON text. */
  readonly result?: string;
}

interface Failed extends EndedByError<"failed"> {
  /** Of a batch job, the items that are left to do, as JSON text. */
  readonly remaining?: string;
  readonly itemErrors?: Error[];
}

/** What a task did: it returned, or it threw. */
export type RunOutcome = Succeeded | Failed;

/** What becomes of the job. */
export type Outcome =
  | RunOutcome
  /** Failed, and tried again after a rest of its own. */
  | (Omit<Failed, "kind"> & { readonly kind: "backedOff"; readonly delayMs: number })
  /** Failed permanently, by the task's own decision. */
  | EndedByError<"gaveUp">
  /** Put off by its task, with its attempt restored. `token` tells this time from any other. */
  | (EndedByError<"snoozed"> & {
      /** When it runs again; by this process's clock, if `isExact` is false. */
      readonly runAt: Date;
      readonly isExact: boolean;
      readonly delayMs: number;
      readonly maxSnoozes: number | undefined;
      readonly token: string;
      /** A limit is held back for as long: the one that is named, or the job's own. */
      readonly holds?: { readonly limit: string | undefined };
    })
  /** Cancelled, from outside or by its task. */
  | EndedByError<"cancelled">;

/** A job that failed; never throws, whatever was thrown. */
export function failed(
  job: Job,
  thrown: unknown,
  batch?: { readonly remaining: string; readonly itemErrors: Error[] },
): Failed {
  const error = toError(thrown);
  return { kind: "failed", job, error, text: errorText(error), ...batch };
}

export function isLastAttempt(job: Job): boolean {
  return job.attempts >= job.max_attempts;
}

/** How an outcome was written: as it was decided, or otherwise. */
export type WrittenAs = "decided" | "lost" | "cancelled" | "failed";

/** What became of a job that was cancelled meanwhile, or put off more often than it may be. */
export function outcomeAs(decided: Outcome, as: WrittenAs): Outcome {
  if (decided.kind === "succeeded" || as === "decided" || as === "lost") return decided;
  const { job, error, text } = decided;
  return { kind: as, job, error, text };
}

/** When a job may run again, in milliseconds from now; undefined if it does not. */
export function dueAgainMs(outcome: Outcome): number | undefined {
  switch (outcome.kind) {
    case "failed":
      return retryDelayMs(outcome.job);
    case "backedOff":
    case "snoozed":
      return outcome.delayMs;
    default:
      return undefined;
  }
}

/** The database's formula. */
function retryDelayMs(job: Job): number {
  return Math.exp(Math.min(job.attempts, 10)) * 1000;
}
