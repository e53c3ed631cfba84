import type { RecoveryDecision } from "../hook-answers.ts";
import type { Job } from "../job.ts";
import type { Outcome } from "./outcome.ts";

/** Stands around the run of a job. Never rejects, and does not run a job that was given away meanwhile. */
export type AroundRun = (job: Job, run: () => Promise<Outcome>, isAbandoned: () => boolean) => Promise<Outcome>;

/** What others may put into the way of a pool's jobs; each is there only if somebody asked for it. */
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
  readonly beforeEnd?: (error: Error | undefined) => Promise<void>;
}
