import { clientDatabase, type Database } from "../db/database.ts";
import { isAway } from "../db/sqlstate.ts";
import { failJobs } from "../db/statements/fail-jobs.ts";
import {
  buryWorkers,
  type DeadWorkerRow,
  findDeadWorkers,
  forgetFormerWorkers,
  limitSweep,
  lockSweep,
  readHeldJobs,
  recoverJobs,
  rescheduleRecovered,
} from "../db/statements/sweep-workers.ts";
import type { RecoveryDecision } from "../hook-answers.ts";
import type { Job } from "../job.ts";
import type { HookDetails } from "../lifecycle-hooks.ts";
import type { RecoverySettings } from "./recovery-settings.ts";

/** Where others may have a say, or just want to know. Without `jobRecovery` jobs are recovered in one statement. */
export interface SweepHooks {
  /** Decides what becomes of a job; must not throw, nor take long. */
  readonly jobRecovery?: ((event: HookDetails<"jobRecovery">) => Promise<RecoveryDecision>) | undefined;
  readonly jobInterrupted?: ((event: HookDetails<"jobInterrupted">) => void) | undefined;
  readonly workerRecovered?: ((event: HookDetails<"workerRecovered">) => void) | undefined;
}

export interface SweepOptions {
  /** Who sweeps. */
  readonly sweeperId: string;
  readonly settings: Pick<
    RecoverySettings,
    | "sweepThreshold"
    | "recoveryDelay"
    | "resilientSweepThresholdMultiplier"
    | "resilientJobFlags"
    | "crashGrace"
    | "maxCrashes"
  >;
  /** Also look for locks that nobody answers for; costs a look at all jobs. */
  readonly withOrphans: boolean;
  /** Find out, and change nothing. */
  readonly dryRun: boolean;
  readonly hooks: SweepHooks;
}

/** A worker that was taken for dead. */
export interface DeadWorker {
  readonly id: string;
  /** It gave no sign of life; its connection broke and did not come back; or it had left, but not its locks. */
  readonly reason: DeadWorkerRow["reason"];
  readonly lastHeartbeatAt: Date | null;
  readonly metadata: unknown;
}

export interface SweptJob {
  readonly id: string;
  readonly task: string;
  readonly workerId: string;
  /**
   * `recovered`: runs again after the delay. `suspect`: failed for good, because it ran in too many deaths. The others are
   * decisions of a `jobRecovery` hook.
   */
  readonly outcome: "recovered" | "suspect" | "rescheduled" | "failed" | "skipped";
}

export interface SweepResult {
  /** False if another sweep was under way: it finds the same, and this one did nothing. */
  readonly isDone: boolean;
  readonly workerIds: readonly string[];
  readonly workers: readonly DeadWorker[];
  readonly jobs: readonly SweptJob[];
  /** How many jobs were taken from dead workers; of a dry run, how many would be. */
  readonly recoveredCount: number;
}

/** How long the server waits for our next word; hooks may need a while for many jobs. */
const patienceMs = 10_000;
const patienceWithHooksMs = 10 * 60_000;

/** Takes jobs and queues from dead workers: all of it, or nothing, and never two sweeps of a schema at once. */
export async function sweep(database: Database, options: SweepOptions): Promise<SweepResult> {
  const { hooks, sweeperId, dryRun } = options;
  const interrupted: Job[] = [];
  const result = await database.withPgClient(async (client) => {
    const tx = clientDatabase(client, { schema: database.schema, preparedStatements: false });
    await client.query("begin");
    try {
      await tx.run(limitSweep, { idleMs: hooks.jobRecovery ? patienceWithHooksMs : patienceMs });
      const swept = await sweepInside(tx, options, interrupted);
      await client.query(dryRun ? "rollback" : "commit");
      return swept;
    } catch (error) {
      // A connection that is gone takes the transaction with it, and would only keep us waiting.
      if (!isAway(error)) await client.query("rollback").catch(() => undefined);
      throw error;
    }
  });
  if (dryRun || result.workerIds.length === 0) return result;
  for (const job of interrupted) hooks.jobInterrupted?.({ job, workerId: sweeperId, reason: "workerCrashed" });
  hooks.workerRecovered?.({
    workerId: sweeperId,
    deadWorkerIds: result.workerIds,
    jobsRecovered: result.recoveredCount,
  });
  return result;
}

async function sweepInside(tx: Database, options: SweepOptions, interrupted: Job[]): Promise<SweepResult> {
  const { settings, withOrphans, dryRun, hooks } = options;
  const [lock] = await tx.run(lockSweep, { schema: tx.schema });
  if (!lock?.is_locked) return makeResult(false, [], []);
  const dead = await tx.run(findDeadWorkers, {
    thresholdMs: settings.sweepThreshold,
    resilience: settings.resilientSweepThresholdMultiplier,
    resilientFlags: settings.resilientJobFlags,
    graceMs: settings.crashGrace,
    withOrphans,
  });
  const workerIds = dead.map(({ id }) => id);
  if (withOrphans && !dryRun) await tx.run(forgetFormerWorkers, {});
  if (workerIds.length === 0) return makeResult(true, [], []);

  if (dryRun) {
    const held = await tx.run(readHeldJobs, { workerIds });
    return makeResult(
      true,
      dead,
      held.map((job) => describe(job, "recovered")),
    );
  }
  const isWatched = hooks.jobRecovery !== undefined || hooks.jobInterrupted !== undefined;
  const jobs = isWatched
    ? await recoverOneByOne(tx, workerIds, options, interrupted)
    : await recoverAll(tx, workerIds, options, []);
  await tx.run(buryWorkers, { workerIds });
  return makeResult(true, dead, jobs);
}

async function recoverAll(
  tx: Database,
  workerIds: readonly string[],
  { settings }: SweepOptions,
  kept: readonly string[],
): Promise<SweptJob[]> {
  const { recoveryDelay, maxCrashes } = settings;
  const rows = await tx.run(recoverJobs, { workerIds, delayMs: recoveryDelay, maxCrashes, kept });
  return rows.map(({ id, task_identifier, worker_id, is_suspect }) => ({
    id,
    task: task_identifier,
    workerId: worker_id,
    outcome: is_suspect ? "suspect" : "recovered",
  }));
}

/** Hooks decide first; then everything is written together. */
async function recoverOneByOne(
  tx: Database,
  workerIds: readonly string[],
  options: SweepOptions,
  interrupted: Job[],
): Promise<SweptJob[]> {
  const { hooks, sweeperId } = options;
  const held = await tx.run(readHeldJobs, { workerIds });
  const decided: { job: Job; decision: RecoveryDecision }[] = [];
  for (const job of held) {
    const event = { job, workerId: sweeperId, previousWorkerId: job.locked_by!, reason: "workerCrashed" } as const;
    decided.push({ job, decision: (await hooks.jobRecovery?.(event)) ?? "default" });
  }
  const skipped = decided.filter(({ decision }) => decision === "skip");
  const failed = decided.filter(({ decision }) => decision === "failWithBackoff");
  for (const { job } of failed) {
    await tx.run(failJobs, {
      poolId: job.locked_by!,
      jobIds: [job.id],
      attempts: [job.attempts],
      errors: ["The worker died while this job was running"],
      payloads: [null],
      queueIds: null,
    });
  }
  const kept = skipped.map(({ job }) => job.id);
  const jobs = await recoverAll(tx, workerIds, options, kept);
  const swept = await Promise.all(jobs.map((job) => reschedule(tx, job, decided)));
  interrupted.push(...decided.filter(({ decision }) => decision !== "skip").map(({ job }) => job));
  return [
    ...swept,
    ...failed.map(({ job }) => describe(job, "failed")),
    ...skipped.map(({ job }) => describe(job, "skipped")),
  ];
}

async function reschedule(
  tx: Database,
  swept: SweptJob,
  decided: readonly { job: Job; decision: RecoveryDecision }[],
): Promise<SweptJob> {
  const decision = decided.find(({ job }) => job.id === swept.id)?.decision;
  if (typeof decision !== "object" || swept.outcome === "suspect") return swept;
  const { runAt, attempts = null } = decision;
  await tx.run(rescheduleRecovered, { id: swept.id, runAt, attempts });
  return { ...swept, outcome: "rescheduled" };
}

function describe(job: Job, outcome: SweptJob["outcome"]): SweptJob {
  return { id: job.id, task: job.task_identifier, workerId: job.locked_by!, outcome };
}

function makeResult(isDone: boolean, dead: readonly DeadWorkerRow[], jobs: readonly SweptJob[]): SweepResult {
  return {
    isDone,
    workerIds: dead.map(({ id }) => id),
    workers: dead.map(({ id, reason, last_heartbeat_at, metadata }) => ({
      id,
      reason,
      lastHeartbeatAt: last_heartbeat_at,
      metadata,
    })),
    jobs,
    recoveredCount: jobs.filter(({ outcome }) => outcome !== "skipped").length,
  };
}
