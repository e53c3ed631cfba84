import { toError } from "../../errors.ts";
import type { Emit } from "../../events.ts";
import type { Logger } from "../../logger.ts";
import type { WorkerPool } from "../../worker.ts";
import type { Outage } from "./outage.ts";
import { persist } from "./persist.ts";

export interface SureWritesOptions {
  readonly workerPool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly outage: Outage;
}

/** Writes that must not be lost: repeated until the database has them, or until a pool that has to end gives up. */
export class SureWrites {
  readonly #options: SureWritesOptions;
  readonly #giveUp = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #fatal: Error | undefined;
  #shortfall: Error | undefined;
  #leavesLocks = false;
  #pending = 0;

  constructor(options: SureWritesOptions) {
    this.#options = options;
  }

  /** Aborts when whatever is not through at the next try stays unwritten. */
  get signal(): AbortSignal {
    return this.#giveUp.signal;
  }

  /** Why the pool cannot go on, if so. */
  get fatal(): Error | undefined {
    return this.#fatal;
  }

  /** Why something stays unwritten, if so: its locks remain until a sweep. */
  get shortfall(): Error | undefined {
    return this.#shortfall;
  }

  /** Something was not written, so jobs may stay locked under our name. */
  get leavesLocks(): boolean {
    return this.#leavesLocks;
  }

  /** Something is not through. */
  get isWriting(): boolean {
    return this.#pending > 0;
  }

  /** Tries until it is through; throws what the database says if that is given up. */
  async write<T>(write: (mayBeDone: boolean) => Promise<T>): Promise<T> {
    const { signal } = this.#giveUp;
    this.#pending++;
    try {
      return await persist(write, this.#options.outage, signal);
    } catch (error) {
      this.#leavesLocks = true;
      if (signal.aborted) this.#shortfall ??= toError(signal.reason);
      throw error;
    } finally {
      this.#pending--;
    }
  }

  /** What is given up is reported by `shortfall`, and not as an error of its own. */
  unlessGivenUp<T>(written: Promise<T>, otherwise: () => T): Promise<T> {
    return written.catch((error: unknown) => {
      if (!this.#shortfall) throw error;
      return otherwise();
    });
  }

  /** Counts as under way until it has settled. */
  track(written: Promise<void>): void {
    this.#underWay.add(written);
    void written.finally(() => this.#underWay.delete(written));
  }

  /** Resolves when nothing is under way: the end of one write may begin another. */
  async tracked(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** What is not through at the next try stays unwritten, for this reason. */
  giveUp(reason: Error): void {
    this.#giveUp.abort(reason);
  }

  /** Notes that something stays unwritten. */
  fallShort(): void {
    this.#shortfall ??= toError(this.#giveUp.signal.reason);
    this.#leavesLocks = true;
  }

  /** This pool can no longer keep its promises, so it stops and says why. */
  die(error: unknown, action: string): void {
    if (this.#giveUp.signal.aborted) this.fallShort();
    if (this.#fatal || this.#giveUp.signal.aborted) return;
    const { emit, logger, workerPool } = this.#options;
    this.#fatal = toError(error);
    emit("pool:fatalError", { workerPool, error, action });
    logger.error(`The worker cannot go on and stops (${action}): ${this.#fatal.message}`, { error });
    this.giveUp(this.#fatal);
    void workerPool.gracefulShutdown(`Fatal error: ${this.#fatal.message}`);
  }
}
