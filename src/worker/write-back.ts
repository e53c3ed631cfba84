import type { Database } from "../db/database.ts";
import { moveReturnedJob } from "../db/statements/move-returned-job.ts";
import { returnJobs } from "../db/statements/return-jobs.ts";
import { toError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import type { WorkerPool } from "../worker.ts";
import type { HandOver } from "./hand-over.ts";
import type { Outage } from "./outage.ts";
import type { Outcome } from "./outcome.ts";
import { persist } from "./persist.ts";
import { SettleLane, type Write, writeCompleted, writeFailed } from "./settler.ts";
import type { Strays } from "./strays.ts";

export interface WriteBackOptions {
  readonly database: Database;
  readonly workerPool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly outage: Outage;
  readonly strays: Strays;
  readonly handOver: HandOver | undefined;
  readonly completeJobBatchDelay: number;
  readonly failJobBatchDelay: number;
  /** Fewer ends are waiting to be written than before. */
  readonly onFlushed: () => void;
  /** Jobs that were not started are back in line. */
  readonly onReturned: (jobs: readonly Job[]) => void;
}

/** Jobs, and the queues of which nothing is held any more when they are back. */
interface GivenBack {
  readonly jobs: readonly Job[];
  readonly queueIds: readonly number[];
}

/**
 * Every way in which a job leaves a pool: completed, failed, or given back. Tries until the database knows, or until it is told
 * to give up; if the database refuses for good, the pool stops.
 */
export class WriteBack {
  readonly completing: SettleLane<"succeeded">;
  readonly failing: SettleLane<"failed">;
  readonly #options: WriteBackOptions;
  readonly #giveUp = new AbortController();
  readonly #beingReturned = new Set<readonly Job[]>();
  #returning: Promise<void> = Promise.resolve();
  #fatal: Error | undefined;
  #shortfall: Error | undefined;

  constructor(options: WriteBackOptions) {
    const { database, completeJobBatchDelay, failJobBatchDelay, onFlushed } = options;
    this.#options = options;
    const onFatal = (action: string) => (error: unknown) => this.die(error, action);
    this.completing = new SettleLane(
      this.#inTurn(writeCompleted(database)),
      completeJobBatchDelay,
      onFatal("completeJob"),
      onFlushed,
    );
    this.failing = new SettleLane(
      this.#inTurn(writeFailed(database)),
      failJobBatchDelay,
      onFatal("failJob"),
      onFlushed,
    );
  }

  /** Why the pool cannot go on, if so. */
  get fatal(): Error | undefined {
    return this.#fatal;
  }

  /** Why something stays unwritten for good, if so: its locks remain until somebody sweeps them. */
  get shortfall(): Error | undefined {
    return this.#shortfall;
  }

  /** Jobs of which the database does not know yet what became of them. */
  jobs(): Job[] {
    return [...this.completing.jobs(), ...this.failing.jobs(), ...[...this.#beingReturned].flat()];
  }

  /** Resolves when all ends so far are written or given up. */
  async settled(): Promise<void> {
    await Promise.all([this.completing.idle(), this.failing.idle()]);
  }

  /** Resolves when all jobs that were not started, so far, are back in line or given up. */
  returned(): Promise<void> {
    return this.#returning;
  }

  /** Jobs that were not started are on their way back. */
  get isReturning(): boolean {
    return this.#beingReturned.size > 0;
  }

  /** Returns jobs that were claimed and not started. */
  giveBack({ jobs, queueIds }: GivenBack): void {
    if (jobs.length === 0) return;
    this.#beingReturned.add(jobs);
    const written = this.#return(jobs, queueIds, null, null).then(
      () => this.#options.onReturned(jobs),
      (error) => this.die(error, "returnJob"),
    );
    this.#returning = Promise.all([this.#returning, written]).then(() => void this.#beingReturned.delete(jobs));
  }

  /** Returns jobs that were cut off while they ran; gives the ids of those that were no longer ours, or could not be written. */
  giveBackStarted({ jobs, queueIds }: GivenBack, delayMs: number, reason: string): Promise<Set<string>> {
    return this.#unlessGivenUp(this.#return(jobs, queueIds, delayMs, reason), () => new Set(jobs.map(({ id }) => id)));
  }

  /** Changes when a job that was given back runs again. */
  async move({ id, revision }: Job, to: { readonly runAt: Date; readonly attempts?: number }): Promise<void> {
    const params = { id, revision, runAt: to.runAt, attempts: to.attempts ?? null };
    const moved = this.#surely(() => this.#options.database.run(moveReturnedJob, params));
    await this.#unlessGivenUp(moved, () => []);
  }

  /** Fails a job from outside; resolves to whether it was no longer ours, or could not be written. */
  fail(job: Job, error: Error, releaseQueue: number | null): Promise<boolean> {
    return new Promise((resolve) => {
      this.failing.add({
        outcome: { kind: "failed", job, error },
        poolId: job.locked_by!,
        releaseQueue,
        onWritten: (isLost) => {
          if (releaseQueue !== null) this.#options.handOver?.released(releaseQueue);
          resolve(isLost);
        },
        onGivenUp: () => resolve(true),
      });
    });
  }

  /** The last thing to do: from here on nobody would look for what may be locked under our name. */
  async returnStrays(): Promise<void> {
    const { strays } = this.#options;
    for (let ms = strays.lookAt - Date.now(); ms <= 1_000; ms = strays.lookAt - Date.now()) {
      await sleep(ms, this.#giveUp.signal);
      const looked = this.#surely(() => strays.look()).then(() => true);
      if (!(await this.#unlessGivenUp(looked, () => false))) return;
    }
  }

  /** What is not through at the next try stays unwritten, for this reason. */
  giveUp(reason: Error): void {
    this.#giveUp.abort(reason);
  }

  /** This pool can no longer keep its promises, so it stops and says why. */
  die(error: unknown, action: string): void {
    if (this.#fatal || this.#giveUp.signal.aborted) return;
    const { emit, logger, workerPool } = this.#options;
    this.#fatal = toError(error);
    emit("pool:fatalError", { workerPool, error, action });
    logger.error(`The worker cannot go on and stops (${action}): ${this.#fatal.message}`, { error });
    this.giveUp(this.#fatal);
    void workerPool.gracefulShutdown(`Fatal error: ${this.#fatal.message}`);
  }

  async #surely<T>(write: (mayBeDone: boolean) => Promise<T>): Promise<T> {
    const { signal } = this.#giveUp;
    try {
      return await persist(write, this.#options.outage, signal);
    } catch (error) {
      if (signal.aborted) this.#shortfall ??= toError(signal.reason);
      throw error;
    }
  }

  /** What is given up is told by `shortfall`, and no error of its own. */
  #unlessGivenUp<T>(written: Promise<T>, otherwise: () => T): Promise<T> {
    return written.catch((error: unknown) => {
      if (!this.#shortfall) throw error;
      return otherwise();
    });
  }

  #inTurn<Kind extends Outcome["kind"]>(write: Write<Kind>): Write<Kind> {
    return async (endings) => {
      // A queue must not be released before its jobs that we held are back in line, or later ones would overtake them.
      await this.#returning;
      return this.#surely(async (mayBeDone) => {
        const lost = await write(endings);
        // A job that is not ours any more after a try that may have gone through was most likely settled by that.
        return mayBeDone ? null : lost;
      });
    };
  }

  async #return(
    jobs: readonly Job[],
    queueIds: readonly number[],
    delayMs: number | null,
    reason: string | null,
  ): Promise<Set<string>> {
    const { database, workerPool } = this.#options;
    await this.#returning; // as above
    const params = { poolId: jobs[0]!.locked_by!, jobIds: jobs.map(({ id }) => id), queueIds, delayMs, reason };
    const [row] = await this.#surely(
      // If an earlier try went through unheard, we may hold the same jobs again by now: whoever looks for strays knows.
      async (mayBeDone) => (mayBeDone && workerPool._active ? [] : database.run(returnJobs, params)),
    );
    return new Set(row?.lost ?? []);
  }
}
