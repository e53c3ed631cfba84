import type { Pool } from "pg";
import type { WorkerEvents } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { PromiseOrDirect } from "../task.ts";
import type { WorkerPool } from "../worker.ts";
import type { ExtraOptions } from "./extra-options.ts";

/** Decides, before each look for work, which flags this worker leaves alone. */
export type ForbiddenFlagsFn = () => PromiseOrDirect<string[] | null>;

/** What everything that reaches the database can be told. */
export interface SharedOptions {
  /** Hands messages to your own logging; the console's, if left out. */
  logger?: Logger;
  /** Schema that holds the job tables; GRAPHILE_WORKER_SCHEMA or `graphile_worker`, if left out. */
  schema?: string;
  /** Where the database is; DATABASE_URL, if left out. */
  connectionString?: string;
  /** Connections in the pool we make, at most. */
  maxPoolSize?: number;
  /** Your own pool; it stays yours and is never ended. */
  pgPool?: Pool;
  /** Set this behind a pooler that cannot keep prepared statements. */
  noPreparedStatements?: boolean;
  /** Jobs with any of these flags are left alone. */
  forbiddenFlags?: null | string[] | ForbiddenFlagsFn;
  /** Your own emitter, to hear events from the very start. */
  events?: WorkerEvents;
  /** Takes the time from this process and not from the database. */
  useNodeTime?: boolean;
  /** Milliseconds between sweeps for stale locks, at least. */
  minResetLockedInterval?: number;
  /** Milliseconds between sweeps for stale locks, at most. */
  maxResetLockedInterval?: number;
  /** A preset to start from; options given here directly are stronger. */
  preset?: GraphileConfig.Preset;
  /** Milliseconds after the start of a graceful shutdown until the `abortSignal` of running jobs fires. */
  gracefulShutdownAbortTimeout?: number;
}

/** For everything that runs jobs. */
export interface WorkerSharedOptions extends SharedOptions, ExtraOptions {
  /** Milliseconds between looks for work when no notification arrives. */
  pollInterval?: number;
}

/** For `runTaskList`. */
export interface WorkerPoolOptions extends WorkerSharedOptions {
  /** How many jobs run at once in this process. */
  concurrency?: number;
  /** Leaves the process's signals alone. */
  noHandleSignals?: boolean;
}

/** For `runTaskListOnce`. */
export interface RunOnceOptions extends SharedOptions, ExtraOptions {
  /** Names the worker; random, if left out. */
  workerId?: string;
  noHandleSignals?: boolean;
  concurrency?: 1;
}

/** For a single worker. */
export interface WorkerOptions extends WorkerSharedOptions {
  /** Names the worker; random, if left out. */
  workerId?: string;
  abortSignal?: AbortSignal;
  workerPool?: WorkerPool;
  noHandleSignals?: boolean;
  /** False: waits until it is started. */
  autostart?: boolean;
}

/** For `makeWorkerUtils`, `addJobAdhoc` and `runMigrations`. */
export interface WorkerUtilsOptions extends SharedOptions, Pick<ExtraOptions, "hooks" | "context"> {}
