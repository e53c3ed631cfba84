import type { EventHandlers } from "../emit.ts";
import type { MeteredPool } from "../hooks/meter.ts";
import type { Job } from "../job.ts";
import { wallMs } from "../util/timers.ts";
import { Histogram } from "./histogram.ts";
import type { Rollup } from "./rollup.ts";
import { Sizes } from "./sizes.ts";
import type { SeriesByTask } from "./task-series.ts";
import type { TimesRecorder } from "./times-recorder.ts";

/** What is measured of one pool beyond its jobs, and what its health is judged by. */
export class PoolMeter {
  readonly pool: MeteredPool;
  readonly claims = new Histogram();
  readonly claimSizes = new Sizes();
  readonly settles = new Histogram();
  readonly settleSizes = new Sizes();
  claimErrors = 0;
  /** Undefined before the first claim was answered. */
  lastClaimSucceeded: boolean | undefined;
  isStopping = false;
  hasEnded = false;
  fatal: unknown;
  /** What works for it in the background; undefined if the pool has only one client. */
  readonly rollup: Rollup | undefined;
  readonly recorder: TimesRecorder | undefined;
  readonly #tasks: SeriesByTask;
  /** How far this machine's clock is ahead of the one that jobs are claimed by. */
  #aheadMs = 0;

  constructor(
    pool: MeteredPool,
    tasks: SeriesByTask,
    { rollup, recorder }: { readonly rollup?: Rollup | undefined; readonly recorder?: TimesRecorder | undefined },
  ) {
    this.pool = pool;
    this.rollup = rollup;
    this.recorder = recorder;
    this.#tasks = tasks;
  }

  readonly handlers: EventHandlers = {
    "claim:complete": ({ jobs, durationMs }) => {
      this.lastClaimSucceeded = true;
      this.claims.observe(durationMs);
      this.claimSizes.observe(jobs.length);
      const lockedAt = jobs[0]?.locked_at;
      if (lockedAt) this.#aheadMs = wallMs() - durationMs - lockedAt.getTime();
    },
    "claim:error": () => {
      this.lastClaimSucceeded = false;
      this.claimErrors++;
    },
    "settle:complete": ({ count, durationMs }) => {
      this.settles.observe(durationMs);
      this.settleSizes.observe(count);
    },
    "job:start": ({ job }) => this.#tasks.of(job.task_identifier).wait.observe(this.waitMs(job)),
    "job:complete": ({ job, durationMs, outcome }) => {
      const series = this.#tasks.of(job.task_identifier);
      series.run.observe(durationMs);
      series.finished[outcome]++;
    },
    "job:lost": ({ job }) => {
      this.#tasks.of(job.task_identifier).finished.lost++;
    },
    "pool:gracefulShutdown": () => this.#stop(),
    "pool:forcefulShutdown": () => this.#stop(),
    "pool:fatalError": ({ error }) => {
      this.fatal = error ?? true;
    },
    "pool:release": () => {
      this.hasEnded = true;
    },
  };

  /** How long a job that starts now has been due. */
  waitMs(job: Job): number {
    return Math.max(0, wallMs() - this.#aheadMs - dueMs(job));
  }

  #stop(): void {
    this.isStopping = true;
  }
}

/** A job that was added for a time in the past waits since it was added. */
function dueMs({ run_at: runAt, created_at: createdAt }: Job): number {
  return Math.max(runAt.getTime(), createdAt.getTime());
}
