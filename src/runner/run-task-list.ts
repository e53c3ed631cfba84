import type { Pool as PgPool, PoolClient } from "pg";
import type { RunOnceOptions, WorkerPoolOptions } from "../config/options.ts";
import { clientDatabase, poolDatabase } from "../db/database.ts";
import type { HeldPool } from "../db/pool.ts";
import type { TaskList } from "../task.ts";
import { type TaskListInput, toTaskList } from "../tasks/task-list-input.ts";
import type { Pool } from "../worker/pool.ts";
import type { WorkerPool } from "../worker.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import { makeAdders, makeSharedAdders } from "./hooks/adders.ts";
import { databaseOptions } from "./open-database.ts";
import { startPool } from "./start-pool.ts";

/** Runs jobs on your own `pg` pool until stopped. The schema must be up to date; there is no cron. */
export function runTaskList(options: WorkerPoolOptions, tasks: TaskListInput, pgPool: PgPool): WorkerPool {
  const compiled = compileSharedOptions(options);
  return startPoolOn({ pool: pgPool, isOurs: false }, compiled, toTaskList(tasks, compiled.safeLogger), false);
}

/** What is different about a pool that is not the worker's only one. */
interface PoolVariant {
  readonly concurrency?: number;
  /** It forwards jobs, and stops when the worker does. */
  readonly isForwarder?: boolean;
  /** It may have no tasks. */
  readonly mayBeIdle?: boolean;
}

/** Shared by everything that runs tasks on a pool. */
export function startPoolOn(
  { pool: pgPool, isOurs: ownsPool }: Pick<HeldPool, "pool" | "isOurs">,
  compiled: CompiledSharedOptions<WorkerPoolOptions & RunOnceOptions> | CompiledSharedOptions<WorkerPoolOptions>,
  tasks: TaskList,
  isOnce: boolean,
  { concurrency = compiled.settings.concurrentJobs, ...forwards }: PoolVariant = {},
): Pool {
  const { _rawOptions } = compiled;
  const database = poolDatabase(pgPool, databaseOptions(compiled));
  return startPool({
    compiled,
    database,
    tasks,
    ...makeSharedAdders(database, compiled),
    forbiddenFlags: _rawOptions.forbiddenFlags,
    concurrency,
    pgPool,
    ownsPool,
    isOnce,
    noHandleSignals: forwards.isForwarder || _rawOptions.noHandleSignals,
    mayBeIdle: forwards.isForwarder ?? forwards.mayBeIdle,
    isForwarder: forwards.isForwarder,
  });
}

/** Runs the jobs that are due now on one client, one after the other. Await it to wait for the end. */
export function runTaskListOnce(options: RunOnceOptions, tasks: TaskListInput, client: PoolClient): WorkerPool {
  const compiled = compileSharedOptions(options);
  const database = clientDatabase(client, databaseOptions(compiled));
  return startPool({
    compiled,
    database,
    tasks: toTaskList(tasks, compiled.safeLogger),
    ...makeAdders(database, compiled),
    forbiddenFlags: options.forbiddenFlags,
    concurrency: 1,
    pgPool: undefined,
    ownsPool: false,
    isOnce: true,
    workerId: options.workerId ?? undefined,
    noHandleSignals: options.noHandleSignals,
  });
}
