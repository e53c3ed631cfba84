import type { Database } from "../db/database.ts";
import { type JobControlRow, listOverruns, readJobControl } from "../db/statements/control.ts";
import {
  countJobsAhead,
  countQueueJobsAhead,
  findRunningJobOfQueue,
  type JobSituationRow,
  readJobSituation,
  readLastJobId,
} from "../db/statements/explain.ts";
import { countListeners } from "../db/statements/workers.ts";
import { checkJobId, type JobId } from "../job-checks.ts";
import type { Pause } from "../pause.ts";
import { describeReason } from "./describe-reason.ts";
import type { ExplainedReason, OwnerLife, Reason } from "./job-reason.ts";
import { findLimitReasons } from "./limit-reasons.ts";
import { findRegisteredWorkers, type KnownWorker, tasksOf, whereIs } from "./list-workers.ts";
import { readPauses } from "./read-pauses.ts";

export interface JobExplanation {
  readonly id: string;
  /** Null if there is no such job. */
  readonly state: JobSituationRow["state"] | null;
  readonly task: string | null;
  readonly queue: string | null;
  /** Most decisive first; never empty. */
  readonly reasons: readonly ExplainedReason[];
}

/** Who holds the jobs of dead workers until they may run again. */
const parkedBy = "hathi-recovery";
/** Beyond this many, the exact number of jobs ahead no longer matters. */
const countAtMost = 10_000;

/** Says why a job is not running: everything that stands in its way, most decisive first. */
export async function explainJob(db: Database, jobId: JobId, silenceMs?: number): Promise<JobExplanation> {
  const id = checkJobId(jobId);
  const [job] = await db.run(readJobSituation, { id });
  const reasons = job ? await findReasons(db, job, silenceMs) : [await explainAbsence(db, id)];
  const now = job?.now ?? new Date();
  return {
    id,
    state: job?.state ?? null,
    task: job?.task_identifier ?? null,
    queue: job?.queue_name ?? null,
    reasons: reasons.map((reason) => ({ ...reason, message: describeReason(id, reason, now) })),
  };
}

async function explainAbsence(db: Database, id: string): Promise<Reason> {
  const [control] = await db.run(readJobControl, { id });
  if (control?.cancelled_at) return cancelledReason(control, true);
  const [row] = await db.run(readLastJobId, { schema: db.schema });
  return { kind: "gone", neverExisted: BigInt(id) > BigInt(row?.last_id ?? 0) };
}

function cancelledReason(control: JobControlRow, isGone: boolean): Reason {
  const { cancelled_at: at, cancelled_by: by, cancel_reason: reason, cancel_outcome: outcome } = control;
  // Whatever ends a cancelled job in another way than by succeeding says so.
  const hasSucceeded = isGone && outcome !== "cancelled";
  return { kind: "cancelled", task: control.cancelled_task, at: at!, by, reason, isGone, hasSucceeded };
}

async function findControlReasons(db: Database, { id }: JobSituationRow): Promise<Reason[]> {
  const [control] = await db.run(readJobControl, { id });
  const reasons: Reason[] = [];
  if (control?.cancelled_at) reasons.push(cancelledReason(control, false));
  if (control?.snoozes) reasons.push({ kind: "snoozed", snoozes: control.snoozes, lastAt: control.snoozed_at! });
  return [...reasons, ...(await findOverruns(db, { jobId: id, workerId: null }))];
}

async function findOverruns(
  db: Database,
  where: { readonly jobId: string | null; readonly workerId: string | null },
): Promise<Reason[]> {
  const rows = await db.run(listOverruns, where);
  return rows.map((row) => ({
    kind: "overrunning",
    job: { id: row.job_id, task: row.task_identifier },
    by: row.worker_id,
    since: row.started_at,
    timeoutMs: row.timeout_ms,
  }));
}

async function findReasons(db: Database, job: JobSituationRow, silenceMs: number | undefined): Promise<Reason[]> {
  const workers = await findRegisteredWorkers(db, silenceMs);
  if (job.state === "running") {
    const by = job.locked_by ?? "an unknown worker";
    const locked: Reason = { kind: "locked", by, since: job.locked_at!, owner: lifeOf(by, workers) };
    return [...(await findControlReasons(db, job)), locked];
  }
  const reasons = [...findMissingRows(job), ...(await findControlReasons(db, job))];
  const { attempts, max_attempts: maxAttempts, last_error: lastError } = job;
  if (job.state === "dead") reasons.push({ kind: "exhausted", attempts, maxAttempts, lastError });
  if (job.run_at > job.now) reasons.push({ kind: "scheduled", runAt: job.run_at, attempts, lastError });
  reasons.push(...(await findPauseReasons(db, job, workers)));
  if (job.state === "waiting") reasons.push(...(await findLimitReasons(db, job.id)));
  reasons.push(...(await findQueueReasons(db, job, workers)));
  reasons.push(...(await findWorkerReasons(db, job, workers)));
  const flags = Object.keys(job.flags ?? {});
  if (flags.length > 0) reasons.push({ kind: "flags", flags });
  if (job.state === "waiting") reasons.push(...(await findJobsAhead(db, job)));
  return reasons.length > 0 ? reasons : [{ kind: "unblocked", since: job.run_at }];
}

/** Everything that is paused and stands in its way: what is resumed first does not help if another pause remains. */
async function findPauseReasons(
  db: Database,
  job: JobSituationRow,
  workers: readonly KnownWorker[] | undefined,
): Promise<Reason[]> {
  const pauses = await readPauses(db);
  const live = (workers ?? []).filter((worker) => !worker.isSilent);
  const isMeant = ({ kind, name }: Pause): boolean =>
    kind === "all" ||
    (kind === "task" && name === job.task_identifier) ||
    (kind === "queue" && name === job.queue_name) ||
    (kind === "worker" && live.length > 0 && live.every(({ id }) => pauses.some((pause) => pause.name === id)));
  return pauses.filter(isMeant).map((pause) => ({ kind: "paused", pause }));
}

/** Jobs point to their task and queue without a foreign key, so those may have been deleted by hand. */
function findMissingRows({ task_id, task_identifier, job_queue_id, queue_name }: JobSituationRow): Reason[] {
  return [
    ...(task_identifier === null ? [{ kind: "task-missing", taskId: task_id } as const] : []),
    ...(job_queue_id !== null && queue_name === null
      ? [{ kind: "queue-missing", queueId: job_queue_id } as const]
      : []),
  ];
}

async function findQueueReasons(
  db: Database,
  job: JobSituationRow,
  workers: readonly KnownWorker[] | undefined,
): Promise<Reason[]> {
  if (job.queue_name === null || job.job_queue_id === null) return [];
  const reasons: Reason[] = [];
  const queue = job.queue_name;
  if (job.queue_locked_at) {
    const by = job.queue_locked_by ?? "an unknown worker";
    const [holder] = await db.run(findRunningJobOfQueue, { queueId: job.job_queue_id });
    reasons.push({
      kind: "queue-held",
      queue,
      by,
      since: job.queue_locked_at,
      owner: lifeOf(by, workers),
      job: holder ? { id: holder.id, task: holder.task_identifier } : null,
    });
    // A job whose time is over holds its queue without a lock of its own.
    if (!holder) reasons.push(...(await findOverruns(db, { jobId: null, workerId: by })));
  }
  if (job.state === "waiting") {
    const [row] = await db.run(countQueueJobsAhead, { ...placeOf(job), queueId: job.job_queue_id });
    if (row && row.count > 0) reasons.push({ kind: "queue-order", queue, ahead: row.count });
  }
  return reasons;
}

/** Workers that say which tasks they have can be asked; of the others only a listening connection tells that they are there. */
async function findWorkerReasons(
  db: Database,
  job: JobSituationRow,
  workers: readonly KnownWorker[] | undefined,
): Promise<Reason[]> {
  if (job.task_identifier === null) return [];
  const task = job.task_identifier;
  const live = (workers ?? []).filter((worker) => !worker.isSilent);
  const taskLists = live.map(tasksOf);
  if (live.length > 0) {
    const isKnown = taskLists.some((tasks) => tasks === undefined || tasks.includes(task));
    const knownTasks = [...new Set(taskLists.flatMap((tasks) => tasks ?? []))];
    return isKnown ? [] : [{ kind: "no-worker-for-task", task, liveWorkers: live.length, knownTasks }];
  }
  const [connections] = await db.run(countListeners, {});
  if (!connections || connections.listeners > 0 || connections.hidden > 0) return [];
  return [{ kind: "no-worker", liveWorkers: workers && workers.length > 0 ? 0 : null }];
}

async function findJobsAhead(db: Database, job: JobSituationRow): Promise<Reason[]> {
  const [row] = await db.run(countJobsAhead, placeOf(job));
  if (!row || row.count === 0) return [];
  return [{ kind: "jobs-ahead", ahead: Math.min(row.count, countAtMost), atLeast: row.count > countAtMost }];
}

function placeOf(job: JobSituationRow): { priority: number; runAt: string; id: string; atMost: number } {
  return { priority: job.priority, runAt: job.exact_run_at, id: job.id, atMost: countAtMost + 1 };
}

function lifeOf(owner: string, workers: readonly KnownWorker[] | undefined): OwnerLife {
  if (owner === parkedBy) return { life: "recovery", lastHeartbeatAt: null, where: null };
  const worker = workers?.find(({ id }) => id === owner);
  if (!worker) return { life: "unknown", lastHeartbeatAt: null, where: null };
  const life = worker.isSilent ? "silent" : "alive";
  return { life, lastHeartbeatAt: worker.last_heartbeat_at, where: whereIs(worker.metadata) };
}
