import type { WorkerEvents } from "./events.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, Job } from "./job.ts";
import type { PromiseOrDirect } from "./task.ts";

/** One slot of a pool: runs one job at a time. */
export interface Worker {
  readonly workerPool: WorkerPool;
  readonly workerId: string;
  readonly promise: Promise<void>;
  /** Asks for work now; true if the slot was free. */
  nudge(): boolean;
  /** Takes no further job; resolves when the running one has ended. With `force`, does not wait for it. */
  release(force?: boolean): PromiseOrDirect<void>;
  getActiveJob(): Job | null;
}

/** One process's share of the work. Can be awaited: it settles as `promise` does. */
export interface WorkerPool extends PromiseLike<void> {
  /** What the locks of its jobs carry. */
  readonly id: string;
  readonly promise: Promise<void>;
  readonly abortSignal: AbortSignal;
  readonly abortPromise: Promise<never>;
  /** The only slot, if there is only one. */
  readonly worker: Worker | null;
  /** Looks for work now. */
  nudge(count: number): void;
  /** @deprecated Use `gracefulShutdown`. */
  release(): Promise<void>;
  /** Claims no more, lets running jobs end, and resolves when all is written. */
  gracefulShutdown(message?: string): Promise<void>;
  /** Waits for nothing: jobs that still run are failed with the message and unlocked. */
  forcefulShutdown(message: string): Promise<{ forceFailedJobs: readonly Job[] }>;
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<void | T>;
  finally(onFinally?: (() => void) | null): Promise<void>;
  /** @internal */
  readonly _shuttingDown: boolean;
  /** @internal */
  readonly _forcefulShuttingDown: boolean;
  /** @internal */
  readonly _active: boolean;
  /** @internal */
  readonly _workers: readonly Worker[];
}

/** What `run` gives: a running worker. */
export interface Runner {
  /** Stops gracefully; resolves when everything is written and closed. */
  stop: (reason?: string) => Promise<void>;
  /** Stops at once: running jobs are failed and unlocked. */
  kill: (reason?: string) => Promise<void>;
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
  /** Settles when the runner has stopped; rejects when it died of an error. */
  promise: Promise<void>;
  events: WorkerEvents;
  [Symbol.asyncDispose]: () => Promise<void>;
}

/** The part of a cron runner that events carry. */
export interface Cron {
  release(): Promise<void>;
  promise: Promise<void>;
  /** @internal */
  _active: boolean;
}

export const LocalQueueModes = Object.freeze({
  STARTING: "STARTING",
  POLLING: "POLLING",
  WAITING: "WAITING",
  TTL_EXPIRED: "TTL_EXPIRED",
  RELEASED: "RELEASED",
});
export type LocalQueueMode = keyof typeof LocalQueueModes;

/** The part of a pool's buffer that events carry. */
export interface LocalQueue {
  readonly mode: LocalQueueMode;
}
