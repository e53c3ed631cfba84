import type { RecoverySettings } from "../config/recovery-options.ts";
import type { Database } from "../db/database.ts";
import { type CrashedAttempt, keepCrashed, toKeptTasks } from "../db/statements/history.ts";
import { failJobs } from "../db/statements/settle.ts";
import {
  buryWorkers,
  type DeadWorkerRow,
  endCancelled,
  findDeadWorkers,
  findLeftovers,
  forgetFormerWorkers,
  limitSweep,
  lockSweep,
  readHeldJobs,
  recoverJobs,
  rescheduleRecovered,
} from "../db/statements/sweep.ts";
import { printError } from "../error-print.ts";
import type { HookDetails } from "../hooks/lifecycle.ts";
import type { RecoveryDecision } from "../hooks/results.ts";
import type { Job } from "../job.ts";
import type { KeepRule, KeepRules } from "../kept-history.ts";
import { judgingMs } from "./witness.ts";

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
    | "recoveryBackoff"
  >;
  /** Also search for locks without a known owner; costs a scan of all jobs. */
  readonly withOrphans: boolean;
  /** For how long the sweeper's own heartbeats have arrived without a break, at this time of the server; null if it sends none. */
  readonly witnessedMs: (nowMs: number) => number | null;
  /** Find out, and change nothing. */
  readonly dryRun: boolean;
  readonly hooks: SweepHooks;
  /** What is kept of attempts that count as failed. */
  readonly keepRules: KeepRules;
}

/** A worker that was taken for dead. */
export interface DeadWorker {
  readonly id: string;
  /** It sent no heartbeat; it lost its connection and did not reconnect; or it had stopped, but left locks behind. */
  readonly reason: DeadWorkerRow["reason"];
  readonly lastHeartbeatAt: Date | null;
  readonly metadata: unknown;
}

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

interface Swept extends SweptJob, Pick<CrashedAttempt, "attempt" | "waitMs" | "runMs"> {
  readonly taskId: number;
}

export interface SweepResult {
  /** False if it did nothing: another sweep was under way, which finds the same, or it is too soon after an outage. */
  readonly isDone: boolean;
  readonly workerIds: readonly string[];
  readonly workers: readonly DeadWorker[];
  readonly jobs: readonly SweptJob[];
  /** How many jobs were taken from dead workers; of a dry run, how many would be. */
  readonly recoveredCount: number;
  /** Something is left for the next sweep, because another transaction held it. */
  readonly hasLeftovers: boolean;
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
/** How long the server waits for our next word; hooks may need a while for many jobs. */
const patienceMs = 10_000;
const patienceWithHooksMs = 10 * 60_000;

/** Takes jobs and queues from dead workers: all of it, or nothing, and never two sweeps of a schema at once. */
export async function sweep(database: Database, options: SweepOptions): Promise<SweepResult> {
  const { hooks, sweeperId, dryRun, keepRules } = options;
  await keepRules.opening();
  const interrupted: Job[] = [];
  const work = async (tx: Database): Promise<SweepResult> => {
    await tx.run(limitSweep, { idleMs: hooks.jobRecovery ? patienceWithHooksMs : patienceMs });
    return sweepInside(tx, options, interrupted);
  };
  const result = await database.transaction(work, { dryRun });
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
  const { settings, withOrphans, witnessedMs, dryRun, hooks } = options;
  const [lock] = await tx.run(lockSweep, { schema: tx.schema });
  if (!lock?.is_locked) return makeResult([], [], { isDone: false });
  const witnessed = witnessedMs(lock.now_ms);
  if (witnessed !== null && witnessed < judgingMs(settings)) return makeResult([], [], { isDone: false });
  const dead = await tx.run(findDeadWorkers, {
    thresholdMs: settings.sweepThreshold,
    resilience: settings.resilientSweepThresholdMultiplier,
    resilientFlags: settings.resilientJobFlags,
    graceMs: settings.crashGrace,
    withOrphans,
    witnessedMs: witnessed,
  });
  const workerIds = dead.map(({ id }) => id);
  if (withOrphans && !dryRun) await tx.run(forgetFormerWorkers, {});
  if (workerIds.length === 0) return makeResult([], []);

  if (dryRun) {
    const held = await tx.run(readHeldJobs, { workerIds });
    return makeResult(
      dead,
      held.map((job) => describe(job, "recovered", dead)),
    );
  }
  const isWatched = hooks.jobRecovery !== undefined || hooks.jobInterrupted !== undefined;
  const jobs = isWatched
    ? await recoverOneByOne(tx, dead, options, interrupted)
    : await recoverAll(tx, { dead, kept: [], pardoned: [] }, options);
  await keepEnded(tx, jobs, options);
  await tx.run(endCancelled, { ids: jobs.map(({ id }) => id) });
  const kept = jobs.filter(({ outcome }) => outcome === "skipped").map(({ id }) => id);
  const [left] = await tx.run(findLeftovers, { workerIds, kept });
  await tx.run(buryWorkers, { workerIds });
  return makeResult(dead, jobs, { hasLeftovers: left?.has_leftovers === true });
}

/** Outcomes after which the attempt does not run again. */
const ended: readonly SweptJob["outcome"][] = ["failed", "suspect", "cancelled"];

/** An attempt that has ended has its entry in history, like one that was settled. */
async function keepEnded(tx: Database, jobs: readonly Swept[], { keepRules }: SweepOptions): Promise<void> {
  const rules = new Map<number, KeepRule>();
  const crashed: CrashedAttempt[] = [];
  for (const job of jobs) {
    const rule = ended.includes(job.outcome) ? keepRules.of(job.task) : undefined;
    if (!rule) continue;
    rules.set(job.taskId, rule);
    crashed.push({ ...job, ...printError(job.task, { name: "WorkerCrashed" }) });
  }
  if (crashed.length === 0) return;
  await tx.run(keepCrashed, { crashed, kept: toKeptTasks(rules, "failedDays", keepRules.redact) });
}

async function recoverAll(
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
async function recoverOneByOne(
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
    ...failed.map(({ job }) => describe(job, "failed", dead)),
    ...skipped.map(({ job }) => describe(job, "skipped", dead)),
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

function describe(job: Job, outcome: SweptJob["outcome"], dead: readonly DeadWorkerRow[]): Swept {
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

function makeResult(
  dead: readonly DeadWorkerRow[],
  jobs: readonly Swept[],
  { isDone = true, hasLeftovers = false } = {},
): SweepResult {
  return {
    isDone,
    hasLeftovers,
    workerIds: dead.map(({ id }) => id),
    workers: dead.map(({ id, reason, last_heartbeat_at, metadata }) => ({
      id,
      reason,
      lastHeartbeatAt: last_heartbeat_at,
      metadata,
    })),
    jobs: jobs.map(({ id, task, workerId, outcome }) => ({ id, task, workerId, outcome })),
    recoveredCount: jobs.filter(({ outcome }) => outcome !== "skipped").length,
  };
}
