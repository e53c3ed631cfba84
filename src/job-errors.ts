import { inspect } from "node:util";
import { HathiError, JobSpecError } from "./errors.ts";
import { formatSpan, parseSpan } from "./util/time-span.ts";

/** Throw it from a task to postpone the job: it runs again then, and its attempt is not used. */
export class SnoozeError extends HathiError {
  readonly code = "SNOOZE";
  /** A moment, if one was given. */
  readonly until: Date | undefined;
  /** Milliseconds from now, if a length of time was given. */
  readonly delayMs: number | undefined;

  /** `when`: milliseconds, a string such as `"5m"`, or the moment itself. */
  constructor(when: number | string | Date, message?: string) {
    const delayMs = typeof when === "string" ? parseSpan(when) : typeof when === "number" ? when : undefined;
    const until = when instanceof Date && !Number.isNaN(when.getTime()) ? when : undefined;
    if (!until && !(delayMs !== undefined && Number.isFinite(delayMs) && delayMs >= 0)) {
      throw new JobSpecError(
        `SnoozeError takes milliseconds, a string such as "5m", or a date; got ${inspect(when, { depth: 0 })}.`,
      );
    }
    super(message ?? `Snoozed ${until ? `until ${until.toISOString()}` : `for ${formatSpan(delayMs!)}`}`);
    this.until = until;
    this.delayMs = delayMs;
  }
}

/** Throw it from a task when a service asks to slow down (a 429): the jobs of its key, its task or a shared limit wait until then, and no attempt is used. */
export class RateLimitError extends HathiError {
  readonly code = "RATE_LIMIT";
  readonly retryAfterMs: number;
  /** The limit to hold back, if one was named. */
  readonly limit: string | undefined;

  /** `retryAfter`: milliseconds, a string such as `"30s"`, or the moment itself. `limit`: the name of a shared limit of the task to hold back. */
  constructor(options: { readonly retryAfter: number | string | Date; readonly limit?: string }, message?: string) {
    const { retryAfter, limit } = options ?? {};
    const ms =
      typeof retryAfter === "string"
        ? parseSpan(retryAfter)
        : retryAfter instanceof Date
          ? Math.max(0, retryAfter.getTime() - Date.now())
          : retryAfter;
    if (typeof ms !== "number" || !Number.isFinite(ms) || ms < 0) {
      throw new JobSpecError(
        `RateLimitError takes { retryAfter } as milliseconds, a string such as "30s", or a date; got ${inspect(retryAfter, { depth: 0 })}.`,
      );
    }
    super(message ?? `Held back for ${formatSpan(ms)}`);
    this.retryAfterMs = ms;
    this.limit = limit;
  }
}

/** Throw it from a task when trying again is pointless: the job fails permanently, whatever attempts are left. */
export class UnrecoverableError extends HathiError {
  readonly code = "UNRECOVERABLE";
}

/** Throw it from a task to cancel its own job: the job is deleted and does not count as failed. */
export class CancelJobError extends HathiError {
  readonly code = "CANCEL_JOB";
}

/** The `reason` of a job's `abortSignal` when the job was cancelled. */
export class JobCancelledError extends HathiError {
  readonly code = "JOB_CANCELLED";
  /** What was given as the reason. */
  readonly cancelReason: string | null;
  readonly cancelledBy: string | null;

  constructor(cancelReason: string | null, cancelledBy: string | null) {
    super(`The job was cancelled${cancelReason === null ? "" : `: ${cancelReason}`}`);
    this.cancelReason = cancelReason;
    this.cancelledBy = cancelledBy;
  }
}

/** The job took longer than its `timeout`: the `reason` of its `abortSignal`, and then what the attempt failed with. */
export class TimeoutError extends HathiError {
  readonly code = "JOB_TIMEOUT";
  readonly timeoutMs: number;

  constructor(timeoutMs: number, options?: ErrorOptions) {
    super(`The job took longer than its timeout of ${timeoutMs} ms`, options);
    this.timeoutMs = timeoutMs;
  }
}

/** The `reason` of a job's `abortSignal` when the job no longer belongs to its worker: it may run elsewhere at the same time. Also thrown by `completeIn`. */
export class JobLostError extends HathiError {
  readonly code = "JOB_LOST";
}

/** The `reason` of a job's `abortSignal` when its worker stops and has waited for `gracefulShutdownAbortTimeout`. Its `name` is `AbortError`. */
export class ShutdownAbortError extends HathiError {
  readonly code = "SHUTDOWN";
  override get name(): string {
    return "AbortError";
  }
}

type Thrown = SnoozeError | RateLimitError | UnrecoverableError | CancelJobError;

/** What a task decided by throwing it, if it did. Another copy of this library may have made the error, so its code counts. */
export function decisionIn(error: Error): Thrown | undefined {
  const classes = [SnoozeError, RateLimitError, UnrecoverableError, CancelJobError];
  if (classes.some((one) => error instanceof one)) return error as Thrown;
  const { code, name } = error as Partial<Thrown>;
  const isOurs =
    (code === "SNOOZE" && name === "SnoozeError") ||
    (code === "RATE_LIMIT" && name === "RateLimitError") ||
    (code === "UNRECOVERABLE" && name === "UnrecoverableError") ||
    (code === "CANCEL_JOB" && name === "CancelJobError");
  return isOurs ? (error as Thrown) : undefined;
}
