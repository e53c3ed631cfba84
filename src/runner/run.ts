import type { ParsedCronItem } from "../cron/cron-item.ts";
import { type RunningCron, startCron } from "../cron/scheduler.ts";
import { isUnreachable } from "../db/sqlstate.ts";
import { ConfigError } from "../errors.ts";
import type { Forwarder } from "../forwarder.ts";
import type { TaskList } from "../task.ts";
import { type TaskListInput, toTaskList } from "../tasks/task-list-input.ts";
import type { Pool } from "../worker/pool.ts";
import type { Runner } from "../worker.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import { defaultTimeZone, findCronItems } from "./cron-items.ts";
import { getTasks } from "./get-tasks.ts";
import { makeSharedAdders } from "./hooks/adders.ts";
import { cronHooks } from "./hooks/cron-hooks.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { type OpenDatabase, openDatabase, workerIdleMs } from "./open-database.ts";
import { startPoolOn } from "./run-task-list.ts";
import type { RunnerOptions } from "./runner-options.ts";
import { attendSignals } from "./signals.ts";
import { type RunningForwarders, requireOneWay, startForwarders } from "./start-forwarders.ts";

/** Connects to the database, brings its schema up to date, and runs jobs and recurring jobs until stopped. */
export async function run(
  options: RunnerOptions,
  overrideTaskList?: TaskListInput,
  overrideParsedCronItems?: ParsedCronItem[],
): Promise<Runner> {
  const compiled = compileSharedOptions(options);
  const open = openDatabase(compiled, { idleMs: workerIdleMs });
  try {
    await migrateSchema(open.database, compiled.ctx);
    const tasks = overrideTaskList ? toTaskList(overrideTaskList, compiled.safeLogger) : await findTasks(compiled);
    const cronItems = overrideParsedCronItems ? () => overrideParsedCronItems : await findCronItems(compiled);
    return startRunner(compiled, open, tasks, cronItems).runner;
  } catch (error) {
    await open.release();
    throw error;
  }
}

/** Runs all jobs that are due, including those that they add, then stops. */
export async function runOnce(options: RunnerOptions, overrideTaskList?: TaskListInput): Promise<void> {
  const compiled = compileSharedOptions(options);
  const open = openDatabase(compiled);
  try {
    await migrateSchema(open.database, compiled.ctx);
    const tasks = overrideTaskList ? toTaskList(overrideTaskList, compiled.safeLogger) : await findTasks(compiled);
    await startPoolOn(open, compiled, tasks, true).promise;
  } finally {
    await open.release();
  }
}

function findForwarders({ resolvedPreset }: CompiledSharedOptions<RunnerOptions>): readonly Forwarder[] {
  const { forward = [] } = resolvedPreset.worker;
  const forwarders: readonly Forwarder[] = Array.isArray(forward) ? forward : [forward];
  for (const each of forwarders) {
    if (typeof each?.open !== "function") {
      throw new ConfigError("'forward' must be an array of forwarders, which forward() of 'hathi/forward' makes.");
    }
  }
  return forwarders;
}

async function findTasks(compiled: CompiledSharedOptions<RunnerOptions>): Promise<TaskList> {
  const { taskList, taskDirectory } = compiled._rawOptions;
  if (taskList && taskDirectory) throw new ConfigError("Give either 'taskList' or 'taskDirectory', not both.");
  if (taskList) return toTaskList(taskList, compiled.safeLogger);
  const { tasks } = await getTasks(compiled._rawOptions, compiled.settings.taskDirectory);
  return tasks;
}

/** A runner, and the two parts that can be told of changes. */
export interface RunnerParts {
  readonly runner: Runner;
  readonly pool: Pool;
  readonly cron: RunningCron;
}

export function startRunner(
  compiled: CompiledSharedOptions<RunnerOptions>,
  open: OpenDatabase,
  tasks: TaskList,
  cronItems: () => readonly ParsedCronItem[],
): RunnerParts {
  const { settings, emit, events, safeLogger: logger } = compiled;
  const { database } = open;
  const forwarders = findForwarders(compiled);
  requireOneWay(forwarders, tasks);
  const cron = startCron({
    items: cronItems,
    database,
    emit,
    ...cronHooks(compiled.lifecycle),
    timeZone: defaultTimeZone(settings),
    onTrouble: ({ error, identifiers, retryInMs }) => {
      const what = identifiers ? `Could not schedule ${identifiers.join(", ")}` : "Scheduling recurring jobs failed";
      const next = retryInMs === undefined ? "" : `; trying again in ${(retryInMs / 1000).toFixed(1)} s`;
      // The pool already logs an unreachable database, once.
      logger[isUnreachable(error) ? "debug" : "error"](`${what}: ${error.message}${next}`, { error });
    },
  });
  let pool: Pool;
  try {
    pool = startPoolOn(open, compiled, tasks, false, { mayBeIdle: forwarders.length > 0 });
  } catch (error) {
    void cron.release().catch(() => undefined);
    throw error;
  }

  const forwarding = startForwarders(compiled, open, forwarders, tasks);
  let ending: Promise<void> | undefined;
  const end = (): Promise<void> => {
    ending ??= endRunner(pool, cron, forwarding, open);
    return ending;
  };
  // However the pool ends (by us, by a signal, of an error), cron and the connections end with it.
  const promise = pool.promise.then(end, async (error) => {
    await end();
    throw error;
  });
  if (forwarders.length > 0) attendSignals(pool, { ended: promise, forwarding });
  promise.catch(() => undefined); // whoever cares awaits it; a runner must not end the process by itself

  const runner: Runner = {
    async stop(reason) {
      if (ending) throw new Error("Runner is already stopped");
      emit("stop", {});
      await Promise.all([end(), pool.gracefulShutdown(reason)]);
    },
    async kill(reason = "Forced worker shutdown due to runner.kill()") {
      if (!ending) emit("stop", {});
      forwarding.kill(reason);
      await Promise.all([end(), pool.forcefulShutdown(reason)]);
    },
    ...makeSharedAdders(database, compiled),
    promise,
    events,
    async [Symbol.asyncDispose]() {
      if (!ending) await this.stop();
      await ending;
    },
  };
  return { runner, pool, cron };
}

async function endRunner(
  pool: Pool,
  cron: RunningCron,
  forwarding: RunningForwarders,
  open: OpenDatabase,
): Promise<void> {
  await Promise.all([cron.release(), forwarding.stop(), pool.promise.catch(() => undefined)]); // `runner.promise` tells of it
  const released = open.release();
  // A job that was not waited for may keep a connection for as long as it likes.
  if (pool.isIdle && forwarding.isIdle) await released;
  else released.catch(() => undefined);
}
