import type { Job } from "../job.ts";
import type { Lifecycle } from "../lifecycle-hooks.ts";
import { findTracing } from "../telemetry/open-telemetry.ts";
import { traceRun } from "../telemetry/trace-runs.ts";
import type { AroundRun } from "../worker/interceptors.ts";
import type { Outcome } from "../worker/outcome.ts";

/** What stands around each run: a consumer span if the application traces, and inside it the hooks that may decide. */
export function makeAroundRun(lifecycle: Lifecycle): () => AroundRun | undefined {
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
    if (before.kind === "fail") return { kind: "failed", job, error: before.error };

    const startedAt = performance.now();
    const outcome = await run();
    if (isAbandoned()) return outcome;
    const after = await lifecycle.ask("afterJobRun", {
      job,
      workerId,
      result: outcome.kind === "failed" ? { ok: false, error: outcome.error } : { ok: true },
      durationMs: performance.now() - startedAt,
    });
    if (after.kind === "continue") return outcome;
    return after.kind === "skip" ? { kind: "succeeded", job } : failInstead(job, outcome, after.error);
  };
}

/** What a batch has left to do stays all it has left to do. */
function failInstead(job: Job, outcome: Outcome, error: Error): Outcome {
  return outcome.kind === "failed" ? { ...outcome, error } : { kind: "failed", job, error };
}
