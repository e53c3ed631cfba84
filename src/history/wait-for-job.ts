import { inspect } from "node:util";
import type { WatchedJobRow } from "../db/statements/watch.ts";
import { JobSpecError } from "../errors.ts";
import { checkJobId, type JobId } from "../job-checks.ts";
import { type Duration, toMs } from "../task-options.ts";
import { deferred } from "../util/deferred.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import { JobFailedError, JobUnknownError, WaitTimeoutError } from "../wait-errors.ts";
import type { JobWatch } from "./job-watch.ts";

export interface WaitOptions {
  /** Stops waiting, with the signal's reason; the job goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Stops waiting after this time, with a `WaitTimeoutError`: milliseconds, or a string such as `"30s"`. No limit, if left out. */
  readonly timeout?: Duration | undefined;
}

/** Node has no timers for more than 24 days; whoever would wait for longer waits without a limit. */
const maxTimeoutMs = 2 ** 31 - 1;

/** Resolves with the job's result (undefined if none was kept), or rejects with a `JobFailedError`. */
export async function waitForJob(watch: JobWatch, id: JobId, options: WaitOptions = {}): Promise<unknown> {
  const jobId = checkJobId(id);
  const { signal, timeoutMs } = checkWaitOptions(options);
  signal?.throwIfAborted();
  const end = deferred<unknown>();
  let wasThere = false;
  const leave = watch.watch(canonical(jobId), {
    onAnswer(row) {
      if (row?.state === "present") wasThere = true;
      else if (row?.state === "succeeded") end.resolve(row.has_result ? row.result : undefined);
      else end.reject(row ? failureOf(row) : new JobUnknownError(jobId, wasThere));
    },
    onError: end.reject,
  });
  const onAbort = (): void => end.reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer =
    timeoutMs === undefined || timeoutMs > maxTimeoutMs
      ? undefined
      : setTimeout(() => end.reject(new WaitTimeoutError(jobId, timeoutMs)), timeoutMs);
  try {
    return await end.promise;
  } finally {
    leave();
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Checked before a job is added that is to be waited for. */
export function checkWaitOptions({ signal, timeout }: WaitOptions): {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
} {
  const timeoutMs = timeout === undefined ? undefined : toMs(timeout);
  if (timeout !== undefined && (timeoutMs === undefined || timeoutMs < 0)) {
    throw new JobSpecError(
      `'timeout' must be a number of milliseconds from 0 up or a string such as '30s', got ${inspect(timeout)}.`,
    );
  }
  return { signal, timeoutMs };
}

/** As the database writes it, without leading zeros. */
function canonical(id: string): string {
  return String(BigInt(id));
}

function failureOf({ id, state, task_identifier: task, error: reason, attempts }: WatchedJobRow): JobFailedError {
  return new JobFailedError({
    id,
    task,
    outcome: state === "cancelled" ? "cancelled" : "permanentlyFailed",
    reason,
    attempts,
  });
}
