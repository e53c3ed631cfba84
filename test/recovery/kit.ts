import type { RecoveryOptions } from "../../src/config/recovery-options.ts";
import type { TestDatabase } from "../support/database.ts";
import { startWorker, type WorkerProcess, type WorkerProcessOptions } from "../support/worker-process.ts";

/** Quick enough to watch, and slow enough for a busy machine. */
export const quickly = {
  heartbeatInterval: 200,
  sweepInterval: 300,
  sweepThreshold: 4_000,
  recoveryDelay: 0,
  crashGrace: 1_000,
} satisfies RecoveryOptions;

/** Starts a worker of ours with recovery on, and waits until it runs. */
export function startRecovering(database: TestDatabase, options: WorkerProcessOptions = {}): Promise<WorkerProcess> {
  return startWorker({ connectionString: database.url, pollInterval: 500, recovery: quickly, ...options });
}

/** Adds a job; gives its id. */
export async function addJob(
  database: TestDatabase,
  task: string,
  payload: object = {},
  { queue = null, flags = null }: { queue?: string | null; flags?: string[] | null } = {},
): Promise<string> {
  const [row] = await database.query<{ id: string }>(
    "select id from graphile_worker.add_job($1, $2, queue_name => $3, flags => $4)",
    [task, JSON.stringify(payload), queue, flags],
  );
  return row!.id;
}

/** The ids under which workers are registered now. */
export async function registered(database: TestDatabase): Promise<string[]> {
  const rows = await database.query<{ id: string }>("select id from graphile_worker._private_workers order by id");
  return rows.map(({ id }) => id);
}
