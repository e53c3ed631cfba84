import { listTaskNames } from "../db/statements/task-names.ts";
import { errorTitle } from "../error-text.ts";
import { ConfigError } from "../errors.ts";
import type { Forwarder, OpenForwarder } from "../forwarder.ts";
import type { TaskList } from "../task.ts";
import { giveOptions, readTaskOptions } from "../task-options.ts";
import { clearInterval, setImmediate, setInterval } from "../util/timers.ts";
import type { Pool } from "../worker/pool.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import type { OpenDatabase } from "./open-database.ts";
import { startPoolOn } from "./run-task-list.ts";
import type { RunnerOptions } from "./runner-options.ts";

/** How often new names are looked for that a pattern matches. */
const lookMs = 1_000;

export interface RunningForwarders {
  readonly isIdle: boolean;
  /** Waits for the answers of the targets until the jobs' abort signals fire. */
  stop(): Promise<void>;
  /** Stops without waiting for any answer. */
  kill(reason: string): void;
}

/** Whether a forwarder takes a task because of its patterns. */
type Takes = (name: string) => boolean;

/** Refuses a task that is run here and forwarded, or forwarded twice: whoever claims a job first would decide. */
export function requireOneWay(forwarders: readonly Forwarder[], tasks: TaskList): void {
  const forwarded = new Set<string>();
  for (const name of forwarders.flatMap(exactNames)) {
    const isLocal = Object.hasOwn(tasks, name);
    if (isLocal || forwarded.has(name)) {
      throw new ConfigError(
        isLocal
          ? `Task '${name}' is in the task list and in 'tasks' of forward(). Remove it from one of them.`
          : `Task '${name}' is in 'tasks' of two forwarders. Remove it from one of them.`,
      );
    }
    forwarded.add(name);
  }
}

/**
 * Starts a pool of its own for each forwarder: its jobs wait for a broker, so they need many slots and little else, and must not take the slots
 * of tasks that run here. Claiming, order in queues, settling in batches, recovery and history are those of any pool.
 */
export function startForwarders(
  compiled: CompiledSharedOptions<RunnerOptions>,
  open: OpenDatabase,
  forwarders: readonly Forwarder[],
  tasks: TaskList,
): RunningForwarders {
  const exact = new Set(forwarders.flatMap(exactNames));
  const matches = forwarders.map(matcherOf);
  const running = forwarders.map((forwarder, index) => {
    // A task of this worker goes first, then an exact name, then the first pattern that matches.
    const takes: Takes = (name) =>
      !Object.hasOwn(tasks, name) && !exact.has(name) && matches.findIndex((each) => each(name)) === index;
    return start(compiled, open, forwarder, takes);
  });
  return {
    get isIdle() {
      return running.every(({ pool }) => pool.isIdle);
    },
    stop: async () => {
      await Promise.all(running.map((each) => each.stop()));
    },
    kill: (reason) => {
      for (const each of running) each.kill(reason);
    },
  };
}

function start(
  compiled: CompiledSharedOptions<RunnerOptions>,
  open: OpenDatabase,
  forwarder: Forwarder,
  takes: Takes,
): { readonly pool: Pool; stop(): Promise<void>; kill(reason: string): void } {
  const { settings, safeLogger: logger } = compiled;
  const opened = forwarder.open({ schema: settings.schema, logger });
  const options = readTaskOptions(forwarder.taskOptions, "forward()");
  const hasPattern = forwarder.tasks.some(isPattern);
  // A task may be called `constructor`.
  const tasks: TaskList = Object.create(null);
  const take = (name: string): void => {
    giveOptions(opened.task, name, options);
    tasks[name] = opened.task;
  };
  for (const name of exactNames(forwarder)) take(name);
  const pool = startPoolOn(open, compiled, tasks, false, { concurrency: forwarder.maxInFlight, isForwarder: true });
  const watch = hasPattern ? watchNames(open, pool, tasks, takes, take) : undefined;
  let isUnwell = false;
  const timer =
    watch &&
    setInterval(() => {
      watch().then(
        () => {
          isUnwell = false;
        },
        (error: unknown) => {
          if (!isUnwell) logger.debug(`Could not look for new tasks to forward: ${errorTitle(error)}`, { error });
          isUnwell = true;
        },
      );
    }, lookMs);
  void watch?.().catch(() => undefined);
  return {
    pool,
    stop: () => stopOne(pool, opened, timer),
    kill: (reason) => {
      opened.abandon();
      // Jobs that are put back by then use no attempt; those that still run are failed.
      setImmediate(() => void pool.forcefulShutdown(reason).catch(() => undefined)); // it has logged why
    },
  };
}

async function stopOne(pool: Pool, opened: OpenForwarder, timer: NodeJS.Timeout | undefined): Promise<void> {
  clearInterval(timer);
  opened.close();
  pool.abortSignal.addEventListener("abort", () => opened.abandon(), { once: true });
  await pool.gracefulShutdown("The worker stops").catch(() => undefined); // it has logged why
}

/** Adds the names that a pattern matches; a name exists from its first job on. */
function watchNames(
  { database }: OpenDatabase,
  pool: Pool,
  tasks: TaskList,
  takes: Takes,
  take: (name: string) => void,
): () => Promise<void> {
  return async () => {
    const rows = await database.run(listTaskNames, {});
    const found = rows.filter(({ identifier }) => !(identifier in tasks) && takes(identifier));
    for (const { identifier } of found) take(identifier);
    if (found.length > 0) pool.refreshTasks();
  };
}

function isPattern(name: string): boolean {
  return name.includes("*");
}

function exactNames({ tasks }: Forwarder): string[] {
  return [...new Set(tasks)].filter((name) => !isPattern(name));
}

function matcherOf({ tasks }: Forwarder): (name: string) => boolean {
  const matchers = tasks.filter(isPattern).map(toMatcher);
  return (name) => matchers.some((each) => each.test(name));
}

function toMatcher(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}
