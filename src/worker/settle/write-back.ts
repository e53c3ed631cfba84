import type { Database } from "../../db/database.ts";
import type { Job } from "../../job.ts";
import { sleep } from "../../util/sleep.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { Unstarted } from "../claim/buffer.ts";
import { QueueReleases } from "./queue-releases.ts";
import { Returns, type ReturnsOptions } from "./returns.ts";
import { Settler, type SettlerOptions } from "./settler.ts";
import type { Strays } from "./strays.ts";
import { SureWrites, type SureWritesOptions } from "./sure-writes.ts";
import { Unwritten } from "./unwritten.ts";

export interface WriteBackOptions
  extends SureWritesOptions,
    Omit<SettlerOptions, "writes" | "releases" | "unwritten">,
    Pick<ReturnsOptions, "onReturned"> {
  readonly database: Database;
  readonly strays: Strays;
  /** A named queue is free for its next job. */
  readonly onReleased: (queueId: number) => void;
}

/**
 * Every way in which a job leaves a pool: settled or returned. Retries until it is written, or until it must give up; if the
 * database keeps refusing, the pool stops. What another transaction holds is written later on its own.
 */
export class WriteBack {
  /** Writes how jobs ended. */
  readonly settler: Settler;
  readonly unwritten = new Unwritten();
  readonly #strays: Strays;
  readonly #writes: SureWrites;
  readonly #releases: QueueReleases;
  readonly #returns: Returns;

  constructor(options: WriteBackOptions) {
    this.#strays = options.strays;
    this.#writes = new SureWrites(options);
    const shared = { ...options, writes: this.#writes, unwritten: this.unwritten };
    this.#releases = new QueueReleases({
      ...shared,
      isReturningTo: (queueId) => this.#returns.isReturningTo(queueId),
    });
    this.#returns = new Returns({ ...shared, onThrough: () => this.#releases.releaseDeferred() });
    this.settler = new Settler({ ...shared, releases: this.#releases });
  }

  /** Why the pool cannot go on, if so. */
  get fatal(): Error | undefined {
    return this.#writes.fatal;
  }

  /** Why something stays unwritten, if so: its locks remain until a sweep. */
  get shortfall(): Error | undefined {
    return this.#writes.shortfall;
  }

  /** Something was not written, so jobs may stay locked under our name. */
  get leavesLocks(): boolean {
    return this.#writes.leavesLocks;
  }

  /** Jobs that were not started are on their way back. */
  get isReturning(): boolean {
    return this.#returns.jobs.size > 0;
  }

  /** Queues that we are done with are still locked. */
  get isReleasing(): boolean {
    return this.#releases.isReleasing;
  }

  /** What is claimed now would overtake jobs that are on their way back and that nothing holds. */
  get mustBeWaitedFor(): boolean {
    return this.#returns.mustBeWaitedFor;
  }

  /** Jobs whose outcome is not written yet. */
  jobs(): Job[] {
    return [...this.unwritten.jobs(), ...this.#returns.jobs];
  }

  /** Returns jobs that were claimed and not started; to run after a rest, if one is given. */
  returnUnstarted(unstarted: Unstarted, delayMs: number | null = null): void {
    this.#returns.returnUnstarted(unstarted, delayMs);
  }

  /** A search for strays begins; what it gives is to be called when everything that we do not hold is back in line. */
  searching(): () => void {
    return this.#returns.searching();
  }

  /** Releases a queue whose job was settled before it had returned. */
  releaseQueue(queueId: number, poolId: string): void {
    this.#releases.release(queueId, poolId);
  }

  /** Returns jobs that were cut off while they ran; gives the ids of those that were no longer ours, or could not be written. */
  returnStarted(started: Unstarted, delayMs: number, reason: string): Promise<Set<string>> {
    return this.#returns.returnStarted(started, delayMs, reason);
  }

  /** Changes when a job that was returned runs again. */
  move(job: Job, to: { readonly runAt: Date; readonly attempts?: number }): Promise<void> {
    return this.#returns.move(job, to);
  }

  /** Asks the database until it answers; throws what it says if that is given up. */
  ask<T>(ask: () => Promise<T>): Promise<T> {
    return this.#writes.write(ask);
  }

  /** Resolves when all outcomes so far are written or given up. */
  async settled(): Promise<void> {
    await this.settler.idle();
    await this.#writes.tracked();
  }

  /** Resolves when all jobs that were not started, so far, are back in line or given up. */
  async returned(): Promise<void> {
    await this.#writes.tracked();
  }

  /** The last thing to do: from here on nothing would search for what may be locked under our name. */
  async returnStrays(): Promise<void> {
    const strays = this.#strays;
    const { signal } = this.#writes;
    for (let ms = strays.searchAt - monotonicMs(); ms <= 1_000; ms = strays.searchAt - monotonicMs()) {
      await sleep(ms, signal);
      const searched = this.#writes.write(() => strays.search()).then(() => true);
      if (!(await this.#writes.unlessGivenUp(searched, () => false)) || signal.aborted) return;
    }
  }

  /** What is not through at the next try stays unwritten, for this reason. */
  giveUp(reason: Error): void {
    this.#writes.giveUp(reason);
  }

  /** The pool ends now: what is under way counts as unwritten, and a claim that was not answered may have locked jobs. */
  leave(reason: Error, isClaiming: boolean): void {
    this.#writes.giveUp(reason);
    if (this.#writes.isWriting || isClaiming) this.#writes.fallShort();
  }

  /** This pool can no longer keep its promises, so it stops and says why. */
  die(error: unknown, action: string): void {
    this.#writes.die(error, action);
  }
}
