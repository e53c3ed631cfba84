import type { Pool as PgPool } from "pg";
import type { ForbiddenFlagsFn } from "../config/options.ts";
import type { Database } from "../db/database.ts";
import { connectDirectly } from "../db/direct-client.ts";
import type { ListenOn } from "../db/listener.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, Job } from "../job.ts";
import type { TaskList } from "../task.ts";
import { makeJobHelpers } from "../worker/helpers.ts";
import { Pool } from "../worker/pool.ts";
import type { PoolHooks } from "../worker/pool-options.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import { noteStopReason, tellHooks } from "./lifecycle-events.ts";
import { logEvents } from "./log-events.ts";
import { makeRecovery } from "./make-recovery.ts";
import { poolInterceptors } from "./pool-interceptors.ts";
import { stopOnSignals } from "./signals.ts";

export interface StartPoolOptions {
  readonly compiled: CompiledSharedOptions<object>;
  readonly database: Database;
  readonly tasks: TaskList;
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
  readonly forbiddenFlags: null | undefined | string[] | ForbiddenFlagsFn;
  readonly concurrency: number;
  /** The pool to listen on; undefined for a single client, which cannot listen. */
  readonly pgPool: PgPool | undefined;
  /** The pool will be gone when the workers are. */
  readonly ownsPool: boolean;
  readonly isOnce: boolean;
  readonly workerId?: string | undefined;
  readonly noHandleSignals?: boolean | undefined;
}

/** Brings a pool to life: hands it its tasks, its door to the database, and everybody who wants to know what it does. */
export function startPool(options: StartPoolOptions): Pool {
  const { compiled, database, tasks, pgPool, isOnce, addJob, addJobs } = options;
  const { settings, logger, lifecycle } = compiled;
  const { withPgClient } = database;
  const workerId = (): string => pool.id;
  const logged = logEvents(compiled.emit, logger, () => Object.keys(tasks));
  const { emit: told, stopReason } = noteStopReason(tellHooks(logged, lifecycle, workerId), lifecycle);
  const onBreakingMigration = (): void => {
    logger.warn(
      "Graphile Worker has received a breaking migration: this worker is too old for it and stops (exit code 57).",
    );
    process.exitCode = 57;
    void pool.gracefulShutdown("Breaking migration");
  };
  const recovery = makeRecovery({ ...options, pool: () => pool, onBreakingMigration });
  const emit = recovery?.follow(told) ?? told;
  lifecycle.observe("workerInit", { schema: settings.schema, concurrency: options.concurrency, withPgClient });
  const pool: Pool = new Pool({
    database,
    tasks,
    settings: { ...settings, concurrentJobs: options.concurrency },
    emit,
    logger,
    makeHelpers: makeJobHelpers({ ...settings, database, logger, addJob, addJobs }),
    hooks: poolHooks(compiled, database, tasks, () =>
      lifecycle.observe("workerStart", { workerId: pool.id, withPgClient }),
    ),
    interceptors: poolInterceptors(lifecycle, workerId, withPgClient, stopReason),
    forbiddenFlags: resolveFlags(options.forbiddenFlags),
    mayHoldAhead: typeof options.forbiddenFlags !== "function",
    listenOn: isOnce || !settings.useNotifications ? undefined : listenOn(options),
    workerId: options.workerId,
    isOnce,
    ownsTransactions: pgPool !== undefined,
    onBreakingMigration,
    lifeline: recovery,
  });
  if (!options.noHandleSignals) stopOnSignals(pool, emit, logger);
  pool.start();
  return pool;
}

function resolveFlags(flags: StartPoolOptions["forbiddenFlags"]): () => Promise<readonly string[] | null> {
  return async () => (typeof flags === "function" ? await flags() : (flags ?? null));
}

function listenOn({ pgPool, ownsPool, compiled }: StartPoolOptions): ListenOn | undefined {
  const { listenConnectionString } = compiled.settings;
  if (listenConnectionString) return { connect: () => connectDirectly(listenConnectionString), isLent: false };
  // The only connection of a pool is needed for work.
  if (!pgPool || pgPool.options.max === 1) return undefined;
  return { connect: () => pgPool.connect(), isLent: !ownsPool };
}

function poolHooks(
  { ctx, hooks, middleware }: CompiledSharedOptions<object>,
  database: Database,
  tasks: TaskList,
  onStarted: () => void,
): PoolHooks {
  const { withPgClient } = database;
  let hasStarted = false;
  return {
    aroundGracefulShutdown: async (workerPool, message, shutDown) => {
      await middleware.run("poolGracefulShutdown", { ctx, workerPool, message }, () => shutDown());
    },
    aroundForcefulShutdown: async (workerPool, message, shutDown) =>
      (await middleware.run("poolForcefulShutdown", { ctx, workerPool, message }, () => shutDown())) as {
        forceFailedJobs: readonly Job[];
      },
    onWorkerStart: async (worker, flags) => {
      const event = { worker, flagsToSkip: flags, tasks, withPgClient };
      await hooks.process("startWorker", ctx, event);
      if (!hasStarted) onStarted();
      hasStarted = true;
      return event.flagsToSkip;
    },
    onWorkerExit: (workerPool, worker, replaceWithNewWorker) => {
      middleware.runSync("poolWorkerPrematureExit", { ctx, workerPool, worker, replaceWithNewWorker }, () => {
        throw new Error(`Worker ${worker.workerId} exited unexpectedly`);
      });
    },
    onWorkerStop: async (worker) => {
      await hooks.process("stopWorker", ctx, { worker, withPgClient });
    },
  };
}
