import { checkJobId, type JobId } from "../job-checks.ts";
import type { ReportedProgress } from "../progress.ts";
import { type Deferred, deferred } from "../util/deferred.ts";
import { JobUnknownError } from "../wait-errors.ts";
import type { JobWatch } from "./job-watch.ts";

export interface ProgressOptions {
  /** Ends the loop, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How far a job is, whenever that has changed, until the job has ended. Who is slow gets the latest only. */
export async function* onProgress(
  watch: JobWatch,
  id: JobId,
  { signal }: ProgressOptions = {},
): AsyncGenerator<ReportedProgress, void, undefined> {
  const jobId = String(BigInt(checkJobId(id)));
  signal?.throwIfAborted();
  let latest: ReportedProgress | undefined;
  let reportedAt = 0;
  let isOver = false;
  let wasThere = false;
  let failure: unknown;
  let news: Deferred<void> = deferred();
  const fail = (error: unknown): void => {
    failure ??= error;
    news.resolve();
  };
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const leave = watch.watch(jobId, {
    onAnswer(row) {
      if (row?.progress && row.reported_at && row.reported_at.getTime() !== reportedAt) {
        reportedAt = row.reported_at.getTime();
        latest = { ...row.progress, reported_at: row.reported_at };
        news.resolve();
      }
      if (row?.state === "present") wasThere = true;
      else if (row || wasThere) {
        isOver = true;
        news.resolve();
      } else fail(new JobUnknownError(jobId, false));
    },
    onError: fail,
  });
  try {
    for (;;) {
      await news.promise;
      news = deferred();
      const next = latest;
      latest = undefined;
      if (next) yield next;
      if (failure !== undefined) throw failure;
      if (isOver && !latest) return;
      if (latest) news.resolve();
    }
  } finally {
    leave();
    signal?.removeEventListener("abort", onAbort);
  }
}
