import type { Pool as PgPool, PoolClient } from "pg";
import type { RunOnceOptions, WorkerPoolOptions } from "../config/options.ts";
import { clientDatabase, poolDatabase } from "../db/database.ts";
import type { HeldPool } from "../db/pool.ts";
import { resetLocks } from "../db/statements/reset-locks.ts";
import type { TaskList } from "../task.ts";
import { type TaskListInput, toTaskList } from "../tasks/defined-names.ts";
import type { Pool } from "../worker/pool.ts";
import type { WorkerPool } from "../worker.ts";
import { makeAdders, makeSharedAdders } from "./add-through-hooks.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import { databaseOptions } from "./open-database.ts";
import { startPool } from "./start-pool.ts";

/** Runs tasks until told to stop, on a pool and a schema that are ready. */
export function runTaskList(options: WorkerPoolOptions, tasks: TaskListInput, pgPool: PgPool): WorkerPool {
  const compiled = compileSharedOptions(options);
  return startPoolOn({ pool: pgPool, isOurs: false }, compiled, toTaskList(tasks), false);
}

/** Shared by everything that runs tasks on a pool. */
export function startPoolOn(
  { pool: pgPool, isOurs: ownsPool }: Pick<HeldPool, "pool" | "isOurs">,
  compiled: CompiledSharedOptions<WorkerPoolOptions & RunOnceOptions> | CompiledSharedOptions<WorkerPoolOptions>,
  tasks: TaskList,
  isOnce: boolean,
): Pool {
  const { settings, _rawOptions } = compiled;
  const database = poolDatabase(pgPool, databaseOptions(compiled));
  return startPool({
    compiled,
    database,
    tasks,
    ...makeSharedAdders(database, compiled),
    forbiddenFlags: _rawOptions.forbiddenFlags,
    concurrency: settings.concurrentJobs,
    pgPool,
    ownsPool,
    isOnce,
    noHandleSignals: _rawOptions.noHandleSignals,
  });
}

/** Runs what is due now on one client, one job after the other; can be awaited. */
export function runTaskListOnce(options: RunOnceOptions, tasks: TaskListInput, client: PoolClient): WorkerPool {
  const compiled = compileSharedOptions(options);
  const { settings, logger } = compiled;
  const database = clientDatabase(client, databaseOptions(compiled));
  void database.run(resetLocks, { clock: settings.useNodeTime ? new Date() : null }).catch((error: unknown) => {
    logger.error(`Failed to reset stale locks: ${String(error)}`, { error });
  });
  return startPool({
    compiled,
    database,
    tasks: toTaskList(tasks),
    ...makeAdders(database, compiled),
    forbiddenFlags: options.forbiddenFlags,
    concurrency: 1,
    pgPool: undefined,
    ownsPool: false,
    isOnce: true,
    workerId: options.workerId,
    noHandleSignals: options.noHandleSignals,
  });
}
