import type { ShutdownReason } from "../hooks/contexts.ts";
import type { RecoveryDecision } from "../hooks/results.ts";
import type { Job } from "../job.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import type { RunOutcome } from "./run/outcome.ts";

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
  /** A worker was released on its own; throws unless a plugin handles it. */
  readonly onWorkerExit: (pool: WorkerPool, worker: Worker, replaceWithNewWorker: () => void) => void;
}

/** Stands around the run of a job. Never rejects, and does not run a job that was given away meanwhile. */
export type AroundRun = (job: Job, run: () => Promise<RunOutcome>, isAbandoned: () => boolean) => Promise<RunOutcome>;

/** What others may add to the path of a pool's jobs; each is there only if it is used. */
export interface PoolInterceptors {
  /** Told of jobs that are now ours. */
  readonly onClaimed?: (jobs: readonly Job[]) => void;
  /** What stands around a run that begins now, if anything. */
  readonly aroundRun?: () => AroundRun | undefined;
  /** Decides what becomes of a job that cannot be waited for. */
  readonly onInterrupt?: (job: Job) => Promise<RecoveryDecision>;
  /** Told when the failure of a job that a forceful shutdown cut off is written. */
  readonly onForceFailed?: (job: Job, error: Error) => void;
  /** Called when all is written, before the pool counts as ended. Never rejects. */
  readonly beforeEnd?: (reason: ShutdownReason, error: Error | undefined) => Promise<void>;
}
