import { HathiError } from "./errors.ts";
import { formatSpan } from "./util/time-span.ts";

interface FailedJob {
  readonly id: string;
  readonly task: string | null;
  readonly outcome: "permanentlyFailed" | "cancelled";
  /** What its last attempt failed with, or why it was cancelled. */
  readonly reason: string | null;
  readonly attempts: number;
}

/** The job that was waited for failed permanently or was cancelled. */
export class JobFailedError extends HathiError {
  readonly code = "JOB_FAILED";
  readonly jobId: string;
  readonly taskIdentifier: string | null;
  readonly outcome: FailedJob["outcome"];
  /** The error of its last attempt, or the reason of the cancel, as far as one is known. */
  readonly reason: string | null;
  readonly attempts: number;

  constructor({ id, task, outcome, reason, attempts }: FailedJob) {
    const how =
      outcome === "cancelled"
        ? "was cancelled"
        : `failed permanently after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
    super(`Job ${id}${task === null ? "" : ` of task '${task}'`} ${how}${reason === null ? "." : `: ${reason}`}`);
    this.jobId = id;
    this.taskIdentifier = task;
    this.outcome = outcome;
    this.reason = reason;
    this.attempts = attempts;
  }
}

/** The job that was waited for does not exist, or ended without leaving a trace. */
export class JobUnknownError extends HathiError {
  readonly code = "JOB_UNKNOWN";
  readonly jobId: string;

  /** `wasThere`: the job was there at first. */
  constructor(jobId: string, wasThere: boolean) {
    super(
      wasThere
        ? `Job ${jobId} is gone, and how it ended was not kept: it was removed, or its task needs 'keepResult' or 'history' to be waited for.`
        : `Nothing is known of job ${jobId}: it never existed, its transaction has not committed yet, or it is gone and how it ended was not ` +
            "kept (waiting for a job needs 'keepResult' or 'history' for its task).",
    );
    this.jobId = jobId;
  }
}

/** The job did not end within the `timeout` of the wait. The job itself continues. */
export class WaitTimeoutError extends HathiError {
  readonly code = "WAIT_TIMEOUT";
  readonly jobId: string;
  readonly timeoutMs: number;

  constructor(jobId: string, timeoutMs: number) {
    super(
      `Job ${jobId} has not ended within ${timeoutMs < 1_000 ? `${timeoutMs} ms` : formatSpan(timeoutMs)}; it goes on.`,
    );
    this.jobId = jobId;
    this.timeoutMs = timeoutMs;
  }
}
