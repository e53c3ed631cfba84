import type { Database } from "../db/database.ts";
import { listRegisteredWorkers } from "../db/statements/workers.ts";

export interface ActiveWorker {
  readonly workerId: string;
  readonly lastHeartbeatAt: Date;
  readonly startedAt: Date;
  readonly metadata: unknown;
  /** Sent no heartbeat for longer than the threshold, by the database's clock. */
  readonly isStale: boolean;
}

/** Workers that take part in recovery, the latest heartbeat first. */
export async function listActiveWorkers(database: Pick<Database, "run">, thresholdMs: number): Promise<ActiveWorker[]> {
  const rows = await database.run(listRegisteredWorkers, {});
  return rows.map((row) => ({
    workerId: row.id,
    lastHeartbeatAt: row.last_heartbeat_at,
    startedAt: row.started_at,
    metadata: row.metadata,
    isStale: row.seconds_since * 1_000 > thresholdMs,
  }));
}
