import type { Database } from "../db/database.ts";
import {
  countJobsAhead,
  countQueueJobsAhead,
  findRunningJobOfQueue,
  type JobSituationRow,
  readJobSituation,
  readLastJobId,
} from "../db/statements/explain-job.ts";
import { countListeners, type RegisteredWorkerRow } from "../db/statements/list-workers.ts";
import { describeReason } from "./describe-reason.ts";
import { checkJobId } from "./list-jobs.ts";
import { findRegisteredWorkers, silentAfterSeconds, whereIs } from "./list-workers.ts";
import type { ExplainedReason, OwnerLife, Reason } from "./reason.ts";

export interface JobExplanation {
  readonly id: string;
  /** Null if there is no such job. */
  readonly state: JobSituationRow["state"] | null;
  readonly task: string | null;
  readonly queue: string | null;
  /** Most decisive first; never empty. */
  readonly reasons: readonly ExplainedReason[];
}

/** Beyond this many, the exact number of jobs ahead tells nobody anything more. */
const countAtMost = 10_000;

/** Says why a job is not running: everything that stands in its way, most decisive first. */
export async function explainJob(db: Database, id: string): Promise<JobExplanation> {
  const [job] = await db.run(readJobSituation, { id: checkJobId(id) });
  const reasons = job ? await findReasons(db, job) : [await explainAbsence(db, id)];
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
  const [row] = await db.run(readLastJobId, { schema: db.schema });
  return { kind: "gone", neverExisted: BigInt(id) > BigInt(row?.last_id ?? 0) };
}

async function findReasons(db: Database, job: JobSituationRow): Promise<Reason[]> {
  const workers = await findRegisteredWorkers(db);
  if (job.state === "running") {
    const by = job.locked_by ?? "nobody";
    return [{ kind: "locked", by, since: job.locked_at!, owner: lifeOf(by, workers) }];
  }
  const reasons: Reason[] = [];
  const { attempts, max_attempts: maxAttempts, last_error: lastError } = job;
  if (job.state === "failed") reasons.push({ kind: "exhausted", attempts, maxAttempts, lastError });
  if (job.run_at > job.now) reasons.push({ kind: "scheduled", runAt: job.run_at, attempts, lastError });
  reasons.push(...(await findQueueReasons(db, job, workers)));
  reasons.push(...(await findWorkerReasons(db, job, workers)));
  const flags = Object.keys(job.flags ?? {});
  if (flags.length > 0) reasons.push({ kind: "flags", flags });
  if (job.state === "ready") reasons.push(...(await findJobsAhead(db, job)));
  return reasons.length > 0 ? reasons : [{ kind: "ready", since: job.run_at }];
}

async function findQueueReasons(
  db: Database,
  job: JobSituationRow,
  workers: readonly RegisteredWorkerRow[] | undefined,
): Promise<Reason[]> {
  if (job.queue_name === null || job.job_queue_id === null) return [];
  const reasons: Reason[] = [];
  const queue = job.queue_name;
  if (job.queue_locked_at) {
    const by = job.queue_locked_by ?? "nobody";
    const [holder] = await db.run(findRunningJobOfQueue, { queueId: job.job_queue_id });
    reasons.push({
      kind: "queue-held",
      queue,
      by,
      since: job.queue_locked_at,
      owner: lifeOf(by, workers),
      job: holder ? { id: holder.id, task: holder.task_identifier } : null,
    });
  }
  if (job.state === "ready") {
    const [row] = await db.run(countQueueJobsAhead, { ...placeOf(job), queueId: job.job_queue_id });
    if (row && row.count > 0) reasons.push({ kind: "queue-order", queue, ahead: row.count });
  }
  return reasons;
}

/** Workers that say which tasks they have can be asked; of the others only a listening connection tells that they are there. */
async function findWorkerReasons(
  db: Database,
  job: JobSituationRow,
  workers: readonly RegisteredWorkerRow[] | undefined,
): Promise<Reason[]> {
  const live = (workers ?? []).filter((worker) => worker.seconds_since <= silentAfterSeconds);
  const taskLists = live.map(tasksOf);
  if (live.length > 0) {
    const isKnown = taskLists.some((tasks) => tasks === undefined || tasks.includes(job.task_identifier));
    return isKnown ? [] : [{ kind: "no-worker-for-task", task: job.task_identifier, liveWorkers: live.length }];
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

function tasksOf({ metadata }: RegisteredWorkerRow): readonly string[] | undefined {
  if (typeof metadata !== "object" || metadata === null || !("tasks" in metadata)) return undefined;
  return Array.isArray(metadata.tasks) ? metadata.tasks.map(String) : undefined;
}

function lifeOf(owner: string, workers: readonly RegisteredWorkerRow[] | undefined): OwnerLife {
  const worker = workers?.find(({ id }) => id === owner);
  if (!worker) return { life: "unknown", lastHeartbeatAt: null, where: null };
  const life = worker.seconds_since > silentAfterSeconds ? "silent" : "alive";
  return { life, lastHeartbeatAt: worker.last_heartbeat_at, where: whereIs(worker.metadata) };
}
