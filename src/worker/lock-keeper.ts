import type { Database } from "../db/database.ts";
import { refreshLocks } from "../db/statements/refresh-locks.ts";
import { resetLocks } from "../db/statements/reset-locks.ts";
import { toError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { WorkerPool } from "../worker.ts";

/** Long before anybody's four-hour rule. */
const refreshIntervalMs = 20 * 60_000;

export interface LockKeeperOptions {
  readonly database: Database;
  readonly emit: Emit;
  readonly workerPool: WorkerPool;
  /** Jobs that are running, with the pool id they were claimed under. */
  readonly running: () => readonly Job[];
  readonly useNodeTime: boolean;
  readonly minResetLockedInterval: number;
  readonly maxResetLockedInterval: number;
  readonly refreshIntervalMs?: number;
}

/** Frees locks that are four hours old, and keeps our own from ever becoming that old. */
export class LockKeeper {
  readonly #options: LockKeeperOptions;
  #isStopped = false;
  #resetTimer: NodeJS.Timeout | undefined;
  #refreshTimer: NodeJS.Timeout | undefined;
  #busy: Promise<void> = Promise.resolve();

  constructor(options: LockKeeperOptions) {
    this.#options = options;
  }

  start(): void {
    // At a random moment, so that a fleet that starts together does not sweep together.
    this.#schedule(Math.random() * Math.min(60_000, this.#options.maxResetLockedInterval));
    this.#refreshTimer = setInterval(() => void this.#refresh(), this.#options.refreshIntervalMs ?? refreshIntervalMs);
    this.#refreshTimer.unref();
  }

  /** Waits for a sweep that is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#resetTimer);
    clearInterval(this.#refreshTimer);
    await this.#busy;
  }

  #schedule(ms: number): void {
    this.#resetTimer = setTimeout(() => {
      this.#busy = this.#reset();
    }, ms);
    this.#resetTimer.unref();
  }

  async #reset(): Promise<void> {
    const { database, emit, workerPool, useNodeTime, minResetLockedInterval, maxResetLockedInterval } = this.#options;
    emit("resetLocked:started", { workerPool });
    const nextDelay = (): number | null =>
      this.#isStopped
        ? null
        : Math.ceil(minResetLockedInterval + Math.random() * (maxResetLockedInterval - minResetLockedInterval));
    let delay: number | null;
    try {
      await database.run(resetLocks, { clock: useNodeTime ? new Date() : null });
      delay = nextDelay();
      emit("resetLocked:success", { workerPool, delay });
    } catch (thrown) {
      delay = nextDelay();
      emit("resetLocked:failure", { workerPool, error: toError(thrown), delay });
    }
    if (delay !== null) this.#schedule(delay);
  }

  async #refresh(): Promise<void> {
    const jobs = this.#options.running();
    const [first] = jobs;
    if (!first?.locked_by) return;
    try {
      await this.#options.database.run(refreshLocks, {
        poolId: first.locked_by,
        jobIds: jobs.map(({ id }) => id),
        queueIds: jobs.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null),
        clock: this.#options.useNodeTime ? new Date() : null,
      });
    } catch {
      // The next round comes long before the locks are old; the claimer reports that the database is away.
    }
  }
}
