import type { Lifecycle } from "../../hooks/lifecycle.ts";
import type { Job } from "../../job.ts";
import type { EnhancedWithPgClient } from "../../task.ts";
import { findTracing } from "../../telemetry/open-telemetry.ts";
import { traceRun } from "../../telemetry/trace-runs.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { AroundRun, PoolInterceptors } from "../../worker/pool-hooks.ts";
import { failed, isLastAttempt, type RunOutcome } from "../../worker/run/outcome.ts";

/** What hooks and tracing ask of a pool; where there are no hooks, a pool is asked for nothing. */
export function poolInterceptors(
  lifecycle: Lifecycle,
  workerId: () => string,
  withPgClient: EnhancedWithPgClient,
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
        const durationMs = job.locked_at ? Math.max(0, Date.now() - job.locked_at.getTime()) : 0;
        const name = isLastAttempt(job) ? "jobPermanentlyFail" : "jobFail";
        lifecycle.observe(name, { job, workerId: job.locked_by!, error, durationMs });
      },
    }),
    ...(lifecycle.has("workerShutdown") && {
      beforeEnd: (reason, error) =>
        lifecycle.observeLast("workerShutdown", { workerId: workerId(), reason, error: error ?? null, withPgClient }),
    }),
  };
}

/** What stands around each run: a consumer span if the application traces, and inside it the hooks that may decide. */
function makeAroundRun(lifecycle: Lifecycle): () => AroundRun | undefined {
  const asking = lifecycle.has("beforeJobRun", "afterJobRun") ? askHooks(lifecycle) : undefined;
  return () => {
    const tracing = findTracing();
    if (!tracing) return asking;
    return (job, run, isAbandoned) =>
      traceRun(
        tracing,
        job,
        () => (asking ? asking(job, run, isAbandoned) : run()),
        (outcome) => (outcome.kind === "failed" ? outcome.error : null),
      );
  };
}

function askHooks(lifecycle: Lifecycle): AroundRun {
  return async (job, run, isAbandoned) => {
    const workerId = job.locked_by!;
    const before = await lifecycle.ask("beforeJobRun", { job, workerId, payload: job.payload });
    // Whoever has the job now decides about it.
    if (before.kind === "skip" || isAbandoned()) return { kind: "succeeded", job };
    if (before.kind === "fail") return failed(job, before.error);

    const startedAt = monotonicMs();
    const outcome = await run();
    if (isAbandoned()) return outcome;
    const after = await lifecycle.ask("afterJobRun", {
      job,
      workerId,
      result: outcome.kind === "failed" ? { ok: false, error: outcome.error } : { ok: true },
      durationMs: monotonicMs() - startedAt,
    });
    if (after.kind === "continue") return outcome;
    return after.kind === "skip" ? { kind: "succeeded", job } : failInstead(job, outcome, after.error);
  };
}

/** What a batch has left to do stays all it has left to do. */
function failInstead(job: Job, outcome: RunOutcome, error: Error): RunOutcome {
  return outcome.kind === "failed" ? { ...outcome, ...failed(job, error) } : failed(job, error);
}
