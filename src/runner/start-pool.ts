import { inspect } from "node:util";
import type { Pool as PgPool } from "pg";
import { executorFor } from "../client/transaction/executor-for.ts";
import { requireOpenTransaction } from "../client/transaction/pg-client.ts";
import type { ForbiddenFlagsFn } from "../config/options.ts";
import type { Database } from "../db/database.ts";
import { OutageLog } from "../db/outage-log.ts";
import { type EventHandlers, observeEvents } from "../emit.ts";
import { ConfigError } from "../errors.ts";
import { HistoryMaintenance } from "../history/history-maintenance.ts";
import { LinkRecorder } from "../history/link-recorder.ts";
import { ProgressRecorder } from "../history/progress-recorder.ts";
import type { Meter } from "../hooks/meter.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction } from "../job.ts";
import { type CollectedLimits, collectLimits } from "../limits/collect-limits.ts";
import { LimitMaintenance } from "../limits/limit-maintenance.ts";
import type { Task, TaskList } from "../task.ts";
import { Pool } from "../worker/pool.ts";
import { makeJobHelpers } from "../worker/run/helpers.ts";
import type { AddersIn } from "../worker/run/transactional.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import { makeAdders } from "./hooks/adders.ts";
import { eventHooks } from "./hooks/event-hooks.ts";
import { poolHooks } from "./hooks/plugin-hooks.ts";
import { poolInterceptors } from "./hooks/pool-interceptors.ts";
import { daysKept, makeKeepRules } from "./keep-rules.ts";
import { linkAdders } from "./linked-adders.ts";
import { findListenOn } from "./listen-on.ts";
import { logEvents } from "./log-events.ts";
import { makeRecovery } from "./make-recovery.ts";
import { stopOnSignals } from "./signals.ts";
import { makeTaskOptions } from "./task-options.ts";

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
  /** It may have no tasks, now or at any time. */
  readonly mayBeIdle?: boolean | undefined;
  readonly isForwarder?: boolean | undefined;
}

/** Starts a pool with its tasks, its database and its observers. */
export function startPool(options: StartPoolOptions): Pool {
  const { compiled, database, tasks, pgPool, isOnce, addJob, addJobs } = options;
  const { settings, safeLogger: logger, lifecycle } = compiled;
  const { withPgClient } = database;
  const workerId = (): string => pool.id;
  const onBreakingMigration = (): void => {
    logger.warn(
      "Graphile Worker has received a breaking migration: this worker is too old for it and stops (exit code 57).",
    );
    process.exitCode = 57;
    void pool.gracefulShutdown("Breaking migration");
  };
  const outages = new OutageLog(logger);
  const taskOptions = makeTaskOptions(settings.taskOptions);
  // On a client that is not ours alone, the partitions are left to others.
  const historyMaintenance =
    pgPool && new HistoryMaintenance({ database, logger, days: () => daysKept(keepRules, tasks) });
  const keepRules = makeKeepRules(settings, tasks, taskOptions, () => historyMaintenance?.opening());
  const recovery = makeRecovery({
    ...options,
    isForwarder: options.isForwarder ?? false,
    outages,
    pool: () => pool,
    onBreakingMigration,
    keepRules,
  });
  const emit = observeEvents(compiled.emit, [
    ...(recovery?.handlers ?? []),
    eventHooks(lifecycle, workerId),
    logEvents({ logger, taskNames: () => Object.keys(tasks), logPayloads: settings.logPayloads }),
    ...(settings.metrics ? [attachMeter(settings.metrics, options, () => pool)] : []),
  ]);
  const links = new LinkRecorder({ database, isAlone: pgPool === undefined });
  const linked = linkAdders({
    adders: { addJob, addJobs },
    addersIn: (inside) => makeAdders(inside, compiled),
    keepRules,
    recorder: links,
  });
  const addersIn: AddersIn = (inside, run) => linked.within(inside, run);
  const progress = new ProgressRecorder({ database, emit, logger, poolId: workerId });
  warnOfFewConnections(options, taskOptions);
  const limitDeclaration = (): CollectedLimits => collectLimits(tasks, taskOptions, settings.limits);
  limitDeclaration(); // what cannot work is an error now
  // On a client that is not ours alone, indexes are left to others.
  const limitMaintenance = pgPool && new LimitMaintenance({ database, logger });
  const interceptors = poolInterceptors(lifecycle, workerId, withPgClient);
  lifecycle.observe("workerInit", { schema: settings.schema, concurrency: options.concurrency, withPgClient });
  const pool: Pool = new Pool({
    database,
    tasks,
    settings: { ...settings, concurrentJobs: options.concurrency },
    emit,
    logger,
    outages,
    addersIn,
    makeHelpers: makeJobHelpers({
      ...settings,
      addersIn,
      executorFor: (tx) => executorFor(tx, settings.schema),
      requireOpenTransaction,
      database,
      logger,
      addersOf: (run) => linked.of(run),
      reportProgress: (run, report) => progress.report(run, report),
      taskIdentifiers: () => Object.keys(tasks),
    }),
    hooks: poolHooks(compiled, database, tasks, () =>
      lifecycle.observe("workerStart", { workerId: pool.id, withPgClient }),
    ),
    taskOptions,
    keepRules,
    limitDeclaration,
    onLimited: () => limitMaintenance?.start(),
    interceptors: {
      ...interceptors,
      async beforeEnd(reason, error) {
        await links.close();
        await interceptors.beforeEnd?.(reason, error);
      },
    },
    forbiddenFlags: resolveFlags(options.forbiddenFlags),
    mayHoldAhead: typeof options.forbiddenFlags !== "function",
    listenOn: isOnce ? undefined : findListenOn(settings, pgPool, options.ownsPool),
    workerId: options.workerId,
    mayBeIdle: options.mayBeIdle ?? false,
    isOnce,
    ownsTransactions: pgPool !== undefined,
    onBreakingMigration,
    lifeline: recovery,
  });
  if (!options.noHandleSignals) stopOnSignals(pool, emit, logger);
  pool.start();
  historyMaintenance?.start();
  void pool.promise
    .catch(() => undefined)
    .then(() => Promise.all([progress.close(), historyMaintenance?.stop(), limitMaintenance?.stop()]));
  return pool;
}

/** Each running job of a transactional task keeps a connection. */
function warnOfFewConnections(
  { compiled, tasks, pgPool, concurrency }: StartPoolOptions,
  taskOptions: ReturnType<typeof makeTaskOptions>,
): void {
  const needed = concurrency + 2;
  if (!pgPool || pgPool.options.max >= needed) return;
  const name = Object.keys(tasks).find((task) => taskOptions(task, tasks[task] as Task)?.transactional);
  if (name === undefined) return;
  compiled.safeLogger.warn(
    `Task '${name}' is transactional, so each of its ${concurrency} jobs at a time keeps a connection, and the pool has ${pgPool.options.max}: ` +
      `set 'maxPoolSize' to ${needed} or more.`,
  );
}

function attachMeter(meter: Meter, { compiled, pgPool }: StartPoolOptions, pool: () => Pool): EventHandlers {
  const { settings, safeLogger: logger } = compiled;
  return meter.attach({ ...settings, logger, pgPool, workerPool: pool, turnedAt: () => pool().turnedAt });
}

function resolveFlags(flags: StartPoolOptions["forbiddenFlags"]): () => Promise<readonly string[] | null> {
  if (typeof flags === "function") return async () => checkFlags(await flags());
  const fixed = checkFlags(flags);
  return async () => fixed;
}

function checkFlags(flags: unknown): readonly string[] | null {
  if (flags === undefined || flags === null) return null;
  if (Array.isArray(flags) && flags.every((flag) => typeof flag === "string")) return flags;
  throw new ConfigError(
    `'forbiddenFlags' must be an array of names, or a function that gives one, got ${inspect(flags)}.`,
  );
}
