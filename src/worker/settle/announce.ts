import type { Emit, JobOutcomeName } from "../../events.ts";
import type { Worker } from "../../worker.ts";
import { isLastAttempt, type Outcome } from "../run/outcome.ts";
import type { EndedJob } from "./ended-job.ts";

/** Emits that a task returned or threw, before that is written. What else becomes of a job is certain only once it is written. */
export function announceEnd(emit: Emit, { outcome, worker, durationMs }: EndedJob): void {
  if (!worker) return;
  switch (outcome.kind) {
    case "succeeded":
      if (emit.heard("job:success")) emit("job:success", { worker, job: outcome.job, durationMs });
      return;
    case "failed":
    case "backedOff":
    case "gaveUp":
      announceFailure(emit, outcome, worker, durationMs);
      return;
    case "snoozed":
    case "cancelled":
      return;
    default:
      unknownKind(outcome);
  }
}

/** Emits that the end of a job is written, and as what (`written`); `isLost` if the job was no longer ours. */
export function announceWritten(
  emit: Emit,
  { outcome: decided, worker, error, durationMs }: EndedJob,
  written: Outcome,
  isLost: boolean,
): void {
  if (!worker) return;
  const { job } = written;
  if (isLost) {
    if (emit.heard("job:lost")) emit("job:lost", { worker, job, error, durationMs, outcome: nameOf(written) });
    return;
  }
  if (written.kind === "snoozed") {
    const { runAt } = written;
    emit("job:snoozed", { worker, job, durationMs, error: written.error, runAt });
    emit("job:complete", { worker, job, error, durationMs, outcome: "snoozed", runAt });
    return;
  }
  if (written.kind === "cancelled") emit("job:cancelled", { worker, job, durationMs, error: written.error });
  if (written.kind === "failed" && decided.kind === "snoozed") announceFailure(emit, written, worker, durationMs);
  if (emit.heard("job:complete")) {
    emit("job:complete", { worker, job, error, durationMs, outcome: nameOf(written) });
  }
}

function announceFailure(
  emit: Emit,
  outcome: Extract<Outcome, { kind: "failed" | "backedOff" | "gaveUp" }>,
  worker: Worker,
  durationMs: number,
): void {
  const { job, error } = outcome;
  const itemErrors = "itemErrors" in outcome ? outcome.itemErrors : undefined;
  const details = { worker, job, durationMs, error, ...(itemErrors && { batchJobErrors: itemErrors }) };
  emit("job:error", details);
  if (isFinal(outcome)) emit("job:failed", details);
}

/** Emits that the end of a job could not be written. */
export function announceUnwritten(emit: Emit, { worker, error }: EndedJob, fatal: unknown): void {
  if (worker) emit("worker:fatalError", { worker, error: fatal, jobError: error });
}

/** No further attempt follows. */
function isFinal(outcome: Outcome): boolean {
  return outcome.kind === "gaveUp" || isLastAttempt(outcome.job);
}

/** What people call it; how long a failed job rests makes no difference. */
function nameOf({ kind, job }: Outcome): JobOutcomeName {
  if (kind === "succeeded" || kind === "snoozed" || kind === "cancelled") return kind;
  return kind === "gaveUp" || isLastAttempt(job) ? "permanentlyFailed" : "failed";
}

function unknownKind(outcome: never): never {
  throw new Error(`Unknown outcome: ${(outcome as Outcome).kind}`);
}
