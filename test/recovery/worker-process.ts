import { fileURLToPath } from "node:url";
import type { RecoveryOptions } from "../../src/config/extra-options.ts";
import { builtLibrary } from "../support/built-library.ts";
import type { TestDatabase } from "../support/database.ts";
import { startProcess, type TestProcess } from "../support/process.ts";

/** Quick enough to watch, and slow enough for a busy machine. */
export const quickly = {
  heartbeatInterval: 200,
  sweepInterval: 300,
  sweepThreshold: 4_000,
  recoveryDelay: 0,
  crashGrace: 1_000,
} satisfies RecoveryOptions;

export interface RecoveringWorker extends TestProcess {
  /** The ids of the jobs it has started, in order. */
  started(): string[];
  /** The ids of the jobs it has ended. */
  finished(): string[];
}

/** Starts a worker of ours with recovery on, and waits until it runs. */
export async function startRecovering(
  database: TestDatabase,
  { recovery = quickly, ...options }: { recovery?: RecoveryOptions | undefined; [option: string]: unknown } = {},
): Promise<RecoveringWorker> {
  const script = fileURLToPath(new URL("worker-process.mjs", import.meta.url));
  const child = startProcess(script, [
    JSON.stringify({ connectionString: database.url, library: builtLibrary(), recovery, ...options }),
  ]);
  await child.says(/^ready$/m);
  const ids = (pattern: RegExp) => (): string[] => [...child.output().matchAll(pattern)].map(([, id]) => id!);
  return Object.assign(child, { started: ids(/^started (\d+)/gm), finished: ids(/^ended (\d+)/gm) });
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
