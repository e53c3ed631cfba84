import type { WorkerEvents } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { ExtraOptions } from "./extra-options.ts";

/** When to hold back the next claim after one that found little. */
export interface RefetchDelayOptions {
  /** Milliseconds to hold back, give or take a half; at most `pollInterval`. */
  durationMs: number;
  /** A claim that found more jobs than this is not held back. */
  threshold?: number;
  /** New jobs, at most, that end the delay early; five times the local queue's size, if left out. */
  maxAbortThreshold?: number;
}

/** How far ahead a pool claims. */
export interface LocalQueueOptions {
  /** Jobs to claim at once, at most. */
  size: number;
  /** Milliseconds a claimed job may wait before it is given back. */
  ttl?: number;
  /** Holds back the next claim after one that found little. */
  refetchDelay?: RefetchDelayOptions;
}

declare global {
  namespace GraphileConfig {
    /** Everything that can be set at `preset.worker`. */
    interface WorkerOptions extends ExtraOptions {
      /** Where the database is; DATABASE_URL, if left out. */
      connectionString?: string;
      /** Schema that holds the job tables; GRAPHILE_WORKER_SCHEMA or `graphile_worker`, if left out. */
      schema?: string;
      /** Connections in the pool we make, at most. */
      maxPoolSize?: number;
      /** How many jobs run at once in this process. */
      concurrentJobs?: number;
      /** Milliseconds between looks for work when no notification arrives. */
      pollInterval?: number;
      /** False behind a pooler that cannot keep prepared statements. */
      preparedStatements?: boolean;
      /** Folder of task files, one per task. */
      taskDirectory?: string;
      /** The crontab; read if it exists. */
      crontabFile?: string;
      /** Extensions of task modules, the first that exists wins. */
      fileExtensions?: string[];
      /** Milliseconds after the start of a graceful shutdown until the `abortSignal` of running jobs fires. */
      gracefulShutdownAbortTimeout?: number;
      /** Takes the time from this process and not from the database. */
      useNodeTime?: boolean;
      /** Milliseconds between sweeps for stale locks, at least. */
      minResetLockedInterval?: number;
      /** Milliseconds between sweeps for stale locks, at most. */
      maxResetLockedInterval?: number;
      /** Milliseconds in which look-ups of queue names are gathered. */
      getQueueNameBatchDelay?: number;
      /** Hands messages to your own logging. */
      logger?: Logger;
      /** Your own emitter, to hear events from the very start. */
      events?: WorkerEvents;
      /** How far ahead a pool claims; it decides for itself, if left out. */
      localQueue?: LocalQueueOptions;
      /** Milliseconds in which completed jobs are gathered into one write; no timer, if negative. */
      completeJobBatchDelay?: number;
      /** Milliseconds in which failed jobs are gathered into one write; no timer, if negative. */
      failJobBatchDelay?: number;
    }

    interface Preset {
      worker?: WorkerOptions;
    }
  }
}
