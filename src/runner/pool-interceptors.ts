import type { Lifecycle } from "../lifecycle-hooks.ts";
import type { EnhancedWithPgClient } from "../task.ts";
import type { PoolInterceptors } from "../worker/interceptors.ts";
import { isLastAttempt } from "../worker/outcome.ts";
import { makeAroundRun } from "./around-run.ts";
import type { StopReason } from "./lifecycle-events.ts";

/** What hooks and tracing ask of a pool; where there are no hooks, a pool is asked for nothing. */
export function poolInterceptors(
  lifecycle: Lifecycle,
  workerId: () => string,
  withPgClient: EnhancedWithPgClient,
  stopReason: () => StopReason,
): PoolInterceptors {
  return {
    aroundRun: makeAroundRun(lifecycle),
    ...(lifecycle.has("jobFetch") && {
      onClaimed: (jobs) => {
        for (const job of jobs) lifecycle.observe("jobFetch", { job, workerId: job.locked_by! });
      },
    }),
    ...(lifecycle.has("jobRecovery") && {
      onInterrupt: (job) => {
        const id = job.locked_by!;
        return lifecycle.askRecovery({ job, workerId: id, previousWorkerId: id, reason: "shutdown" });
      },
    }),
    ...(lifecycle.has("jobFail", "jobPermanentlyFail") && {
      onForceFailed: (job, error) => {
        const durationMs = job.locked_at ? Date.now() - job.locked_at.getTime() : 0;
        const name = isLastAttempt(job) ? "jobPermanentlyFail" : "jobFail";
        lifecycle.observe(name, { job, workerId: job.locked_by!, error, durationMs });
      },
    }),
    ...(lifecycle.has("workerShutdown") && {
      beforeEnd: (error) => {
        const reason = error && stopReason() === "graceful" ? "error" : stopReason();
        return lifecycle.observeLast("workerShutdown", {
          workerId: workerId(),
          reason,
          error: error ?? null,
          withPgClient,
        });
      },
    }),
  };
}
