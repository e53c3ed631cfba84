import type { Database } from "../db/database.ts";
import {
  hasWorkersTable,
  listLockOwners,
  listRegisteredWorkers,
  type RegisteredWorkerRow,
} from "../db/statements/list-workers.ts";

export interface WorkerStatus {
  /** The id that its locks carry. */
  readonly id: string;
  /** `alive` and `silent` are known from its signs of life; an owner of locks that gives none is `unknown`. */
  readonly life: "alive" | "silent" | "unknown";
  readonly startedAt: Date | null;
  readonly lastHeartbeatAt: Date | null;
  /** Jobs and queues it holds. */
  readonly jobs: number;
  readonly queues: number;
  readonly oldestLockAt: Date | null;
  /** Its process and host, as far as it says. */
  readonly where: string | null;
  readonly metadata: unknown;
}

/** Without a sign of life for this long a worker is taken for dead; the default of the sweep. */
export const silentAfterSeconds = 5 * 60;

/** Everybody who gives signs of life or holds a lock. */
export async function listWorkers(db: Database): Promise<WorkerStatus[]> {
  const registered = (await findRegisteredWorkers(db)) ?? [];
  const owners = new Map((await db.run(listLockOwners, {})).map((owner) => [owner.id, owner]));
  const known = registered.map((worker): WorkerStatus => {
    const owner = owners.get(worker.id);
    owners.delete(worker.id);
    return {
      id: worker.id,
      life: worker.seconds_since > silentAfterSeconds ? "silent" : "alive",
      startedAt: worker.started_at,
      lastHeartbeatAt: worker.last_heartbeat_at,
      jobs: owner?.jobs ?? 0,
      queues: owner?.queues ?? 0,
      oldestLockAt: owner?.oldest_lock_at ?? null,
      where: whereIs(worker.metadata),
      metadata: worker.metadata,
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
      where: null,
      metadata: null,
    }),
  );
  return [...known, ...unknown];
}

/** Workers that give signs of life; undefined where nobody keeps track of them. */
export async function findRegisteredWorkers(db: Database): Promise<RegisteredWorkerRow[] | undefined> {
  const [table] = await db.run(hasWorkersTable, { schema: db.schema });
  return table?.has ? db.run(listRegisteredWorkers, {}) : undefined;
}

/** What a worker says about itself, in words; workers of other makes say less, or nothing. */
export function whereIs(metadata: unknown): string | null {
  if (typeof metadata !== "object" || metadata === null || !("pid" in metadata)) return null;
  return `process ${String(metadata.pid)}${"hostname" in metadata ? ` on ${String(metadata.hostname)}` : ""}`;
}
