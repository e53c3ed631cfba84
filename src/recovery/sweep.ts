import type { Database } from "../db/database.ts";
import { type CrashedAttempt, keepCrashed, toKeptTasks } from "../db/statements/history.ts";
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
} from "../db/statements/sweep.ts";
import { printError } from "../error-print.ts";
import type { Job } from "../job.ts";
import type { KeepRule } from "../kept-history.ts";
import { describeSwept, recoverAll, recoverOneByOne, type Swept, type SweptJob } from "./recover-jobs.ts";
import type { SweepOptions } from "./sweep-options.ts";
import { judgingMs } from "./witness.ts";

/** A worker that was taken for dead. */
export interface DeadWorker {
  readonly id: string;
  /** It sent no heartbeat; it lost its connection and did not reconnect; or it had stopped, but left locks behind. */
  readonly reason: DeadWorkerRow["reason"];
  readonly lastHeartbeatAt: Date | null;
  readonly metadata: unknown;
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
      held.map((job) => describeSwept(job, "recovered", dead)),
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
