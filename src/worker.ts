import type { WorkerEvents } from "./events.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, DbJob, Job } from "./job.ts";
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

/** The part of a process that runs jobs. It can be awaited: it settles as `promise` does. */
export interface WorkerPool {
  /** The `locked_by` of the jobs it has claimed. */
  readonly id: string;
  /** Resolves when the pool has stopped; rejects if it stopped because of an error. */
  readonly promise: Promise<void>;
  /** Aborts when the shutdown no longer waits for running jobs. */
  readonly abortSignal: AbortSignal;
  /** Rejects when `abortSignal` aborts. */
  readonly abortPromise: Promise<never>;
  /** The only slot, if there is only one. */
  readonly worker: Worker | null;
  /** Claims now instead of at the next poll. */
  nudge(count: number): void;
  /** @deprecated Use `gracefulShutdown`. */
  release(): Promise<void>;
  /** Stops claiming, waits for running jobs, and resolves when every outcome is written. */
  gracefulShutdown(message?: string): Promise<void>;
  /** Stops without waiting: jobs that still run fail with the message and are unlocked. */
  forcefulShutdown(message: string): Promise<{ forceFailedJobs: readonly Job[] }>;
  then<A = void, B = never>(
    onFulfilled?: ((value: void) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B>;
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

/** A running worker, as returned by `run`. */
export interface Runner {
  /** Stops gracefully: waits for running jobs, and resolves when every outcome is written and all connections are closed. */
  stop: (reason?: string) => Promise<void>;
  /** Stops at once: running jobs fail and are unlocked. */
  kill: (reason?: string) => Promise<void>;
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
  /** Resolves when the runner has stopped; rejects if it stopped because of an error. */
  promise: Promise<void>;
  /** The emitter of its events: the option `events`, or one of its own. */
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

/** The modes of a local queue, as its events name them. */
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

/** How Graphile Worker's workers ask for a job. Nothing here calls one; code that names the type goes on compiling. */
export type GetJobFunction = (workerId: string, flagsToSkip: string[] | null) => PromiseOrDirect<Job | undefined>;

/** How they report success; as above. */
export type CompleteJobFunction = (job: DbJob) => void;

/** How they report a failure; as above. */
export type FailJobFunction = (spec: {
  job: DbJob;
  message: string;
  replacementPayload: undefined | unknown[];
}) => void;
