import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import { ConfigError } from "../../errors.ts";
import { decisionIn, TimeoutError } from "../../job-errors.ts";
import { toMs } from "../../task-options.ts";
import type { JobRun } from "./job-run.ts";
import { failed, type Outcome, type RunOutcome } from "./outcome.ts";

/** A year: more than that, or earlier than that, is a mistake, and what is too much for a timestamp would be an error of the whole batch. */
const longestMs = 366 * 24 * 60 * 60_000;

/**
 * What becomes of a job, given what its task did. A task that succeeded has succeeded, whatever was asked of it meanwhile; of one that
 * threw, a cancel from outside counts first, then what the error itself says, then the task's options.
 */
export function decide(run: JobRun, ended: RunOutcome, onBadBackoff: (error: unknown) => void): Outcome {
  if (ended.kind === "succeeded") return ended;
  const { job, options } = run;
  if (run.cancelled) return { kind: "cancelled", job, error: run.cancelled, text: run.cancelled.message };
  const { error, text } = ended;
  const decision = decisionIn(error);
  switch (decision?.code) {
    case "CANCEL_JOB":
      return { kind: "cancelled", job, error, text: error.message };
    case "UNRECOVERABLE":
      return { kind: "gaveUp", job, error, text };
    case "RATE_LIMIT": {
      const delayMs = Math.min(decision.retryAfterMs, longestMs);
      return {
        kind: "snoozed",
        job,
        error,
        text,
        runAt: new Date(Date.now() + delayMs),
        isExact: false,
        delayMs,
        maxSnoozes: undefined,
        token: randomUUID(),
        holds: { limit: decision.limit },
      };
    }
    case "SNOOZE": {
      const { until, delayMs } = decision;
      const now = Date.now();
      const ms = Math.max(-longestMs, Math.min(until ? until.getTime() - now : (delayMs ?? 0), longestMs));
      return {
        kind: "snoozed",
        job,
        error,
        text,
        runAt: new Date(now + ms),
        isExact: until !== undefined,
        delayMs: ms,
        maxSnoozes: options?.maxSnoozes,
        token: randomUUID(),
      };
    }
    default:
  }
  const outcome = run.timedOut && !(error instanceof TimeoutError) ? asTimeout(run.timedOut, ended) : ended;
  return options?.backoff ? backOff(run, outcome, onBadBackoff) : outcome;
}

/** What the task threw after its signal aborted is the cause, not the reason. */
function asTimeout(timeout: TimeoutError, ended: Extract<RunOutcome, { kind: "failed" }>): typeof ended {
  const error = new TimeoutError(timeout.timeoutMs, { cause: ended.error });
  return { ...ended, ...failed(ended.job, error) };
}

function backOff(
  { job, options }: JobRun,
  outcome: Extract<RunOutcome, { kind: "failed" }>,
  onBadBackoff: (error: unknown) => void,
): Outcome {
  try {
    const given = options!.backoff!(job.attempts, outcome.error, job);
    const ms = toMs(given);
    if (ms === undefined || ms < 0) {
      throw new ConfigError(`'backoff' of task '${job.task_identifier}' gave ${inspect(given)}, not a duration.`);
    }
    return { ...outcome, kind: "backedOff", delayMs: Math.min(ms, longestMs) };
  } catch (error) {
    onBadBackoff(error);
    return outcome;
  }
}
