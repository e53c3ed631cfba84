import type { Database } from "../db/database.ts";
import type { ListenOn } from "../db/listener.ts";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import type { MakeHelpers } from "./helpers.ts";
import type { PoolInterceptors } from "./interceptors.ts";
import type { LocalQueueSettings } from "./local-queue.ts";

/** How a pool behaves; the names are those of the options. */
interface PoolSettings {
  readonly concurrentJobs: number;
  readonly pollInterval: number;
  readonly useNodeTime: boolean;
  readonly gracefulShutdownAbortTimeout: number;
  readonly shutdownGracePeriod: number | undefined;
  readonly interruptedJobRetryDelay: number;
  readonly minResetLockedInterval: number;
  readonly maxResetLockedInterval: number;
  readonly completeJobBatchDelay: number;
  readonly failJobBatchDelay: number;
  readonly localQueue: LocalQueueSettings;
  readonly acceptedFlags: readonly string[] | undefined;
}

/** Plugins may stand around a shutdown, and be told when workers start and stop. */
export interface PoolHooks {
  readonly aroundGracefulShutdown: (pool: WorkerPool, message: string, shutDown: () => Promise<void>) => Promise<void>;
  readonly aroundForcefulShutdown: (
    pool: WorkerPool,
    message: string,
    shutDown: () => Promise<{ forceFailedJobs: readonly Job[] }>,
  ) => Promise<{ forceFailedJobs: readonly Job[] }>;
  /** May change the flags that the first claim skips. */
  readonly onWorkerStart: (worker: Worker, flagsToSkip: string[] | null) => Promise<string[] | null>;
  readonly onWorkerStop: (worker: Worker) => Promise<void>;
  /** A worker was released on its own; throws unless somebody deals with it. */
  readonly onWorkerExit: (pool: WorkerPool, worker: Worker, replaceWithNewWorker: () => void) => void;
}

export interface PoolOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly settings: PoolSettings;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly makeHelpers: MakeHelpers;
  readonly hooks: PoolHooks;
  readonly interceptors?: PoolInterceptors | undefined;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  /** False if the forbidden flags can change from one job to the next, so that none may be claimed ahead. */
  readonly mayHoldAhead: boolean;
  /** The connection to listen on; undefined to rely on polling alone. */
  readonly listenOn: ListenOn | undefined;
  readonly workerId: string | undefined;
  /** Run until there is nothing more to do, then stop. */
  readonly isOnce: boolean;
  /** True if claims are statements of their own, so that they may commit without waiting for the disk. */
  readonly ownsTransactions: boolean;
  /** The schema was changed in a breaking way under us. */
  readonly onBreakingMigration: () => void;
  /** Signs of life, for those who would recover our jobs if we died. */
  readonly lifeline?: Lifeline | undefined;
}

/** Nothing is claimed before `register` has succeeded, and `deregister` comes when nothing is held any more. */
export interface Lifeline {
  register(taskNames: readonly string[]): Promise<void>;
  deregister(): Promise<void>;
}
