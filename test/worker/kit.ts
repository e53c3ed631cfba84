import { EventEmitter } from "node:events";
import { onTestFinished } from "vitest";
import type { HathiEventMap, WorkerEventMap, WorkerEvents } from "../../src/events.ts";
import type { Job } from "../../src/job.ts";
import { run } from "../../src/runner/run.ts";
import { runTaskList } from "../../src/runner/run-task-list.ts";
import type { RunnerOptions } from "../../src/runner/runner-options.ts";
import type { TaskList } from "../../src/task.ts";
import type { Runner, WorkerPool } from "../../src/worker.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";

/** A poll that never comes within a test, so that only the right wake-up can explain what happens. */
export const never = 60 * 60_000;

type Name = keyof HathiEventMap;
type Heard = { [N in Name]: { name: N; payload: WorkerEventMap[N] } }[Name];

/** Everything that was emitted, in order. */
export interface Recording {
  readonly events: WorkerEvents;
  readonly heard: Heard[];
  names(): Name[];
  of<N extends Name>(name: N): WorkerEventMap[N][];
  /** Waits until the event was heard this many times, and gives the last. */
  nth<N extends Name>(name: N, count?: number): Promise<WorkerEventMap[N]>;
  /** Waits until the database knows how this many jobs ended. */
  completed(count: number): Promise<void>;
}

export function recordEvents(): Recording {
  const emitter = new EventEmitter();
  const heard: Heard[] = [];
  for (const name of eventNames) {
    emitter.on(name, (payload) => heard.push({ name, payload } as Heard));
  }
  const of = <N extends Name>(name: N): WorkerEventMap[N][] =>
    heard.filter((event) => event.name === name).map(({ payload }) => payload as unknown as WorkerEventMap[N]);
  const nth = async <N extends Name>(name: N, count = 1): Promise<WorkerEventMap[N]> => {
    await until(() => of(name).length >= count, { what: `'${name}' was heard ${count} times` });
    return of(name)[count - 1]!;
  };
  return {
    events: emitter as unknown as WorkerEvents,
    heard,
    names: () => heard.map(({ name }) => name),
    of,
    nth,
    completed: async (count) => void (await nth("job:complete", count)),
  };
}

export interface StartedWorker extends Recording {
  readonly runner: Runner;
  readonly lines: { level: string; message: string }[];
  pool(): WorkerPool;
}

/** A worker with a poll that never comes; it is stopped when the test is over, if it still runs. */
export async function startWorker(
  db: TestDatabase,
  taskList: TaskList,
  options: RunnerOptions = {},
): Promise<StartedWorker> {
  const recording = recordEvents();
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    ...(!options.pgPool && { connectionString: db.url }),
    schema: db.schema,
    pollInterval: never,
    noHandleSignals: true,
    logger,
    events: recording.events,
    ...options,
    taskList,
  });
  onTestFinished(() => runner.kill().catch(() => undefined));
  return { ...recording, runner, lines, pool: () => recording.of("pool:create")[0]!.workerPool };
}

export interface StartedPool extends Recording {
  readonly pool: WorkerPool;
  readonly lines: { level: string; message: string }[];
}

export function startPool(db: TestDatabase, tasks: TaskList, options: RunnerOptions = {}): StartedPool {
  const recording = recordEvents();
  const { logger, lines } = rememberingLogger();
  const pool = runTaskList(
    { pollInterval: never, noHandleSignals: true, logger, events: recording.events, ...options },
    tasks,
    testPool(db.url, options.maxPoolSize),
  );
  onTestFinished(async () => {
    await pool.forcefulShutdown("The test is over.").catch(() => undefined);
  });
  return { ...recording, pool, lines };
}

/** Jobs behind a queue that somebody else holds, and 5,000 queues with one job for tomorrow each. */
export async function addCrowdedQueues(db: TestDatabase, stuck = 600): Promise<void> {
  await db.query(`select graphile_worker.add_job('t', queue_name => 'held') from generate_series(1, ${stuck})`);
  await db.query("update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-other'");
  await db.query(`
    select graphile_worker.add_job('t', queue_name => 'customer ' || n, run_at => now() + interval '1 day')
    from generate_series(1, 5000) as n`);
}

/** A task that stays in each job until it is let go, and says which jobs it has begun. */
export interface HeldTask {
  readonly started: Job[];
  task(payload: unknown, helpers: { job: Job }): Promise<void>;
  /** Waits until this many jobs have begun. */
  begun(count: number): Promise<Job>;
  /** Lets one job go: all is well, or it fails. */
  release(index: number, error?: Error): void;
  releaseAll(): void;
}

export function heldTask(): HeldTask {
  const started: Job[] = [];
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let isOpen = false;
  const releaseAll = (): void => {
    isOpen = true;
    for (const end of ends) end.resolve();
  };
  onTestFinished(releaseAll);
  return {
    started,
    releaseAll,
    task: (_payload, { job }) =>
      new Promise<void>((resolve, reject) => {
        started.push(job);
        ends.push({ resolve, reject });
        if (isOpen) resolve();
      }),
    begun: async (count) => {
      await until(() => started.length >= count, { what: `${count} jobs have begun` });
      return started[count - 1]!;
    },
    release: (index, error) => (error ? ends[index]!.reject(error) : ends[index]!.resolve()),
  };
}

/** Everything an observer can hear; the compiler keeps the list complete. */
export const eventNames = Object.keys({
  "pool:create": 0,
  "pool:listen:connecting": 0,
  "pool:listen:success": 0,
  "pool:listen:error": 0,
  "pool:listen:notification": 0,
  "pool:listen:release": 0,
  "pool:pause": 0,
  "pool:resume": 0,
  "pool:fatalError": 0,
  "pool:release": 0,
  "pool:gracefulShutdown": 0,
  "pool:gracefulShutdown:error": 0,
  "pool:gracefulShutdown:workerError": 0,
  "pool:gracefulShutdown:complete": 0,
  "pool:forcefulShutdown": 0,
  "pool:forcefulShutdown:error": 0,
  "pool:forcefulShutdown:complete": 0,
  "localQueue:init": 0,
  "localQueue:setMode": 0,
  "localQueue:refetchDelay:start": 0,
  "localQueue:refetchDelay:abort": 0,
  "localQueue:refetchDelay:expired": 0,
  "localQueue:getJobs:complete": 0,
  "localQueue:returnJobs": 0,
  "worker:create": 0,
  "worker:release": 0,
  "worker:stop": 0,
  "worker:getJob:start": 0,
  "worker:getJob:error": 0,
  "worker:getJob:empty": 0,
  "worker:fatalError": 0,
  "job:start": 0,
  "job:success": 0,
  "job:error": 0,
  "job:failed": 0,
  "job:complete": 0,
  "job:cancelled": 0,
  "job:cancelling": 0,
  "job:overrun": 0,
  "job:progress": 0,
  "job:snoozed": 0,
  "job:timeout": 0,
  "job:interrupted": 0,
  "job:lost": 0,
  "cron:starting": 0,
  "cron:started": 0,
  "cron:backfill": 0,
  "cron:prematureTimer": 0,
  "cron:overdueTimer": 0,
  "cron:schedule": 0,
  "cron:scheduled": 0,
  "resetLocked:started": 0,
  "resetLocked:success": 0,
  "resetLocked:failure": 0,
  gracefulShutdown: 0,
  forcefulShutdown: 0,
  stop: 0,
} satisfies { [N in Exclude<Name, ExtraName>]: 0 }) as Name[];

/** Events that are none of Graphile Worker's, and not of the worker's core either. */
type ExtraName = Exclude<Name, CoreName>;
type CoreName =
  | `pool:${string}`
  | `worker:${string}`
  | `job:${string}`
  | `localQueue:${string}`
  | `cron:${string}`
  | `resetLocked:${string}`
  | "gracefulShutdown"
  | "forcefulShutdown"
  | "stop";
