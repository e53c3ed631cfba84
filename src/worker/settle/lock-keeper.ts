import type { Database } from "../../db/database.ts";
import { tidyControl } from "../../db/statements/control.ts";
import { tidyGuards } from "../../db/statements/guards.ts";
import { refreshLocks, resetLocks } from "../../db/statements/locks.ts";
import { toError } from "../../errors.ts";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { Service } from "../../util/service.ts";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";

/** Long before anybody's four-hour rule. */
const refreshIntervalMs = 20 * 60_000;

/** Expired guards of adds are deleted in short transactions. */
const guardsPerBatch = 1_000;
const maxGuardBatches = 1_000;

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
export class LockKeeper implements Service {
  readonly #options: LockKeeperOptions;
  #isSweeping = true;
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

  /** Frees old locks now, for a run that ends too soon to do it later. */
  async resetNow(): Promise<void> {
    const { database, useNodeTime } = this.#options;
    try {
      await database.run(resetLocks, { clock: useNodeTime ? new Date() : null });
    } catch {
      // If the database is unreachable, the claim that follows reports it.
    }
  }

  /** Starts no further sweep; the locks of jobs that still run are kept young. */
  stopSweeping(): void {
    this.#isSweeping = false;
    clearTimeout(this.#resetTimer);
  }

  /** Waits for a sweep that is under way, which has a deadline. */
  async stop(): Promise<void> {
    this.stopSweeping();
    clearInterval(this.#refreshTimer);
    await this.#busy;
  }

  #schedule(ms: number): void {
    if (!this.#isSweeping) return; // whoever heard of the last sweep may have stopped us
    this.#resetTimer = setTimeout(() => {
      this.#busy = this.#reset();
    }, ms);
    this.#resetTimer.unref();
  }

  async #reset(): Promise<void> {
    const { database, emit, workerPool, useNodeTime, minResetLockedInterval, maxResetLockedInterval } = this.#options;
    emit("resetLocked:started", { workerPool });
    const nextDelay = (): number | null =>
      this.#isSweeping
        ? Math.ceil(minResetLockedInterval + Math.random() * (maxResetLockedInterval - minResetLockedInterval))
        : null;
    let delay: number | null;
    try {
      await database.run(resetLocks, { clock: useNodeTime ? new Date() : null });
      await database.run(tidyControl, {});
      await this.#tidyGuards();
      delay = nextDelay();
      emit("resetLocked:success", { workerPool, delay });
    } catch (thrown) {
      delay = nextDelay();
      emit("resetLocked:failure", { workerPool, error: toError(thrown), delay });
    }
    if (delay !== null) this.#schedule(delay);
  }

  async #tidyGuards(): Promise<void> {
    for (let batch = 0; batch < maxGuardBatches && this.#isSweeping; batch++) {
      const [row] = await this.#options.database.run(tidyGuards, { most: guardsPerBatch });
      if ((row?.seen ?? 0) < guardsPerBatch) return;
    }
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
      // The next round comes long before the locks are old; the claimer reports that the database is unreachable.
    }
  }
}
