import type { Database } from "../db/database.ts";
import type { CrashedAttempt } from "../db/statements/history.ts";
import { failJobs } from "../db/statements/settle.ts";
import { type DeadWorkerRow, readHeldJobs, recoverJobs, rescheduleRecovered } from "../db/statements/sweep.ts";
import type { RecoveryDecision } from "../hooks/results.ts";
import type { Job } from "../job.ts";
import type { SweepOptions } from "./sweep-options.ts";

export interface SweptJob {
  readonly id: string;
  readonly task: string;
  readonly workerId: string;
  /**
   * `recovered`: runs again, now or after the delay. `suspect`: permanently failed, because it alone was under suspicion in too many deaths.
   * `failed`: counts as failed (`recoveryBackoff`, or a `jobRecovery` hook). `cancelled`: was cancelled while it ran, and is gone. The others are
   * decisions of such a hook.
   */
  readonly outcome: "recovered" | "suspect" | "rescheduled" | "failed" | "cancelled" | "skipped";
}

/** With what history keeps of its attempt. */
export interface Swept extends SweptJob, Pick<CrashedAttempt, "attempt" | "waitMs" | "runMs"> {
  readonly taskId: number;
}

/** What is to become of the jobs of dead workers. */
interface Verdict {
  readonly dead: readonly DeadWorkerRow[];
  /** Jobs that stay locked. */
  readonly kept: readonly string[];
  /** Jobs about which a hook has decided. */
  readonly pardoned: readonly string[];
}

/** The Rust port's word for it, and what that means. */
const crashedError = "WorkerCrashed: the worker died while this job was running.";

/** All in one statement. */
export async function recoverAll(
  tx: Database,
  { dead, kept, pardoned }: Verdict,
  { settings }: SweepOptions,
): Promise<Swept[]> {
  const { recoveryDelay, maxCrashes, recoveryBackoff } = settings;
  const rows = await tx.run(recoverJobs, {
    workerIds: dead.map(({ id }) => id),
    lostIds: dead.filter(({ reason }) => reason === "lost").map(({ id }) => id),
    delayMs: recoveryDelay,
    maxCrashes,
    withBackoff: recoveryBackoff,
    kept,
    pardoned,
  });
  return rows.map(({ id, task_id, task_identifier, worker_id, outcome, attempt, wait_ms, run_ms }) => ({
    id,
    task: task_identifier,
    workerId: worker_id,
    outcome: outcome === "parked" ? "recovered" : outcome,
    taskId: task_id,
    attempt,
    waitMs: wait_ms,
    runMs: run_ms ?? 0,
  }));
}

/** Hooks decide first; then everything is written together. */
export async function recoverOneByOne(
  tx: Database,
  dead: readonly DeadWorkerRow[],
  options: SweepOptions,
  interrupted: Job[],
): Promise<Swept[]> {
  const { hooks, sweeperId } = options;
  const held = await tx.run(readHeldJobs, { workerIds: dead.map(({ id }) => id) });
  const decided: { job: Job; decision: RecoveryDecision }[] = [];
  for (const { is_cancelled: isCancelled, ...job } of held) {
    const event = { job, workerId: sweeperId, previousWorkerId: job.locked_by!, reason: "workerCrashed" } as const;
    const decision = (await hooks.jobRecovery?.(event)) ?? "default";
    // A cancelled job never runs again, whatever is decided.
    decided.push({ job, decision: isCancelled && decision !== "skip" ? "default" : decision });
  }
  const skipped = decided.filter(({ decision }) => decision === "skip");
  const failed = decided.filter(({ decision }) => decision === "failWithBackoff");
  for (const { job } of failed) {
    await tx.run(failJobs, {
      poolId: job.locked_by!,
      jobIds: [job.id],
      attempts: [job.attempts],
      errors: [crashedError],
      payloads: [null],
      queueIds: null,
      isInDoubt: false,
    });
  }
  const kept = skipped.map(({ job }) => job.id);
  const pardoned = decided.filter(({ decision }) => typeof decision === "object").map(({ job }) => job.id);
  const jobs = await recoverAll(tx, { dead, kept, pardoned }, options);
  const swept = await Promise.all(jobs.map((job) => reschedule(tx, job, decided)));
  interrupted.push(...decided.filter(({ decision }) => decision !== "skip").map(({ job }) => job));
  return [
    ...swept,
    ...failed.map(({ job }) => describeSwept(job, "failed", dead)),
    ...skipped.map(({ job }) => describeSwept(job, "skipped", dead)),
  ];
}

async function reschedule(
  tx: Database,
  swept: Swept,
  decided: readonly { job: Job; decision: RecoveryDecision }[],
): Promise<Swept> {
  const decision = decided.find(({ job }) => job.id === swept.id)?.decision;
  if (typeof decision !== "object" || swept.outcome === "suspect") return swept;
  const { runAt, attempts = null } = decision;
  await tx.run(rescheduleRecovered, { id: swept.id, runAt, attempts });
  return { ...swept, outcome: "rescheduled" };
}

/** As it stands in what a sweep reports. */
export function describeSwept(job: Job, outcome: SweptJob["outcome"], dead: readonly DeadWorkerRow[]): Swept {
  const startedAt = job.locked_at!.getTime();
  const lastSeenAt = dead.find(({ id }) => id === job.locked_by)?.last_heartbeat_at?.getTime() ?? startedAt;
  return {
    id: job.id,
    task: job.task_identifier,
    workerId: job.locked_by!,
    outcome,
    taskId: job.task_id,
    attempt: job.attempts,
    waitMs: startedAt - Math.max(job.run_at.getTime(), job.created_at.getTime()),
    runMs: lastSeenAt - startedAt,
  };
}
