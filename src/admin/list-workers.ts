import { recoveryDefaults } from "../config/recovery-options.ts";
import type { Database } from "../db/database.ts";
import { listOverruns } from "../db/statements/control.ts";
import {
  hasWorkersTable,
  listLockOwners,
  listRegisteredWorkers,
  type RegisteredWorkerRow,
} from "../db/statements/workers.ts";
import type { Pause } from "../pause.ts";
import { readPauses } from "./read-pauses.ts";

export interface WorkerStatus {
  /** The id that its locks carry. */
  readonly id: string;
  /** `alive` and `silent` are known from its heartbeats; an owner of locks that sends none is `unknown`. */
  readonly life: "alive" | "silent" | "unknown";
  readonly startedAt: Date | null;
  readonly lastHeartbeatAt: Date | null;
  /** Jobs and queues it holds. */
  readonly jobs: number;
  readonly queues: number;
  readonly oldestLockAt: Date | null;
  /** Jobs that have used up their time and whose tasks have not returned: each takes a slot. */
  readonly overruns: number;
  /** Its process and host, as far as it says. */
  readonly where: string | null;
  readonly metadata: unknown;
  /** Why it starts no jobs: a pause of this worker, or of everything. */
  readonly pause: Pause | null;
}

export interface KnownWorker extends RegisteredWorkerRow {
  /** It sent no heartbeat for too long. */
  readonly isSilent: boolean;
}

export interface ListWorkersOptions {
  /** False: only workers that send heartbeats, and not what they hold, which has to be looked for among all jobs. Default true. */
  readonly countLocks?: boolean | undefined;
}

/** All workers that send heartbeats or hold a lock. */
export async function listWorkers(
  db: Database,
  silenceMs = recoveryDefaults.sweepThreshold,
  { countLocks = true }: ListWorkersOptions = {},
): Promise<WorkerStatus[]> {
  const registered = (await findRegisteredWorkers(db, silenceMs)) ?? [];
  const pauses = await readPauses(db);
  const pauseOf = (id: string): Pause | null =>
    pauses.find(({ kind, name }) => kind === "all" || (kind === "worker" && name === id)) ?? null;
  const owners = new Map((countLocks ? await db.run(listLockOwners, {}) : []).map((owner) => [owner.id, owner]));
  const overruns = new Map<string, number>();
  for (const { worker_id: id } of await db.run(listOverruns, { jobId: null, workerId: null })) {
    overruns.set(id, (overruns.get(id) ?? 0) + 1);
  }
  const known = registered.map((worker): WorkerStatus => {
    const owner = owners.get(worker.id);
    owners.delete(worker.id);
    return {
      id: worker.id,
      life: worker.isSilent ? "silent" : "alive",
      startedAt: worker.started_at,
      lastHeartbeatAt: worker.last_heartbeat_at,
      jobs: owner?.jobs ?? 0,
      queues: owner?.queues ?? 0,
      oldestLockAt: owner?.oldest_lock_at ?? null,
      overruns: overruns.get(worker.id) ?? 0,
      where: whereIs(worker.metadata),
      metadata: worker.metadata,
      pause: pauseOf(worker.id),
    };
  });
  const unknown = [...owners.values()].map(
    ({ id, jobs, queues, oldest_lock_at }): WorkerStatus => ({
      id,
      life: "unknown",
      startedAt: null,
      lastHeartbeatAt: null,
      jobs,
      queues,
      oldestLockAt: oldest_lock_at,
      overruns: overruns.get(id) ?? 0,
      where: null,
      metadata: null,
      pause: pauseOf(id),
    }),
  );
  return [...known, ...unknown];
}

/** Workers that send heartbeats; undefined in a schema without crash recovery. */
export async function findRegisteredWorkers(
  db: Database,
  silenceMs = recoveryDefaults.sweepThreshold,
): Promise<KnownWorker[] | undefined> {
  const [table] = await db.run(hasWorkersTable, { schema: db.schema });
  if (!table?.has) return undefined;
  const rows = await db.run(listRegisteredWorkers, {});
  return rows.map((row) => ({ ...row, isSilent: row.seconds_since * 1_000 > silenceMs }));
}

/** What a worker says about itself, in words; workers of other makes say less, or nothing. */
export function whereIs(metadata: unknown): string | null {
  if (typeof metadata !== "object" || metadata === null || !("pid" in metadata)) return null;
  return `process ${String(metadata.pid)}${"hostname" in metadata ? ` on ${String(metadata.hostname)}` : ""}`;
}

/** The tasks that a worker says it has; undefined if it does not say. */
export function tasksOf({ metadata }: RegisteredWorkerRow): readonly string[] | undefined {
  if (typeof metadata !== "object" || metadata === null || !("tasks" in metadata)) return undefined;
  return Array.isArray(metadata.tasks) ? metadata.tasks.map(String) : undefined;
}
