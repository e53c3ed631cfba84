import { isInDoubt, isRepeatable, isTransient } from "../../db/sqlstate.ts";
import { toError } from "../../errors.ts";
import type { Emit } from "../../events.ts";
import type { Logger } from "../../logger.ts";
import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import type { WorkerPool } from "../../worker.ts";
import type { Outage } from "./outage.ts";

const repeatBackoff = { minMs: 10, maxMs: 1_000, factor: 1.5 };
/** Short, so that the outcomes of jobs are written soon after an outage, and before others may take the jobs. */
const unreachableBackoff = { minMs: 100, maxMs: 1_000, factor: 1.5 };
/** How often to try again to write what another transaction holds. */
export const heldBackoff = { minMs: 20, maxMs: 1_000, factor: 1.5 };
/** A refusal may be a passing state of affairs (a migration, a lock, a role); after this many it is not. */
const maxRefusals = 12;

export interface SureWritesOptions {
  readonly workerPool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly outage: Outage;
}

/** How the tries of one write have gone so far. */
export interface Tries {
  failures: number;
  refusals: number;
  /** One of them may have gone through unheard. */
  mayBeDone: boolean;
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
    const tries = this.begin();
    for (;;) {
      try {
        const result = await write(tries.mayBeDone);
        this.succeeded(tries);
        return result;
      } catch (error) {
        await this.failed(tries, error);
      }
    }
  }

  /** Begins a write; then each try either succeeds or fails. */
  begin(): Tries {
    this.#pending++;
    return { failures: 0, refusals: 0, mayBeDone: false };
  }

  succeeded(tries: Tries): void {
    this.#pending--;
    this.#options.outage.well(tries);
  }

  /**
   * Resolves when it is time for the next try. Throws the error if that is given up: because the pool has to end, or because the database
   * keeps refusing for a reason that is neither a conflict nor an outage.
   */
  async failed(tries: Tries, error: unknown): Promise<void> {
    const { outage } = this.#options;
    const { signal } = this.#giveUp;
    tries.mayBeDone ||= isInDoubt(error);
    outage.suspect(error);
    if (signal.aborted || (!isTransient(error) && ++tries.refusals >= maxRefusals)) {
      outage.leave(tries);
      this.#pending--;
      this.#leavesLocks = true;
      if (signal.aborted) this.#shortfall ??= toError(signal.reason);
      throw error;
    }
    if (!isRepeatable(error)) outage.trouble(tries, error);
    await sleep(backoffMs(isRepeatable(error) ? repeatBackoff : unreachableBackoff, tries.failures++), signal);
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
