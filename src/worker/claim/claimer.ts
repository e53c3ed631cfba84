import { isTransient } from "../../db/sqlstate.ts";
import { deferred } from "../../util/deferred.ts";
import { Pulse } from "../../util/pulse.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { LentClaim } from "../settle/settle-and-claim.ts";
import type { Strays } from "../settle/strays.ts";
import { ClaimRound, type ClaimRoundOptions } from "./claim-round.ts";
import { Schedule } from "./schedule.ts";

export interface ClaimerOptions extends ClaimRoundOptions {
  readonly pollInterval: () => number;
  readonly strays: Strays;
}

/** How long a run that is to end waits until it checks whether it may. */
const quietRestMs = 15;
/** A run that ends when the work is done does not wait indefinitely for a database, or for others to let go. */
const maxErrorsWhenOnce = 8;
const maxContendedWhenOnce = 10;
const maxLimitRestMs = 1_000;

/**
 * Asks the database for jobs, for the whole pool: when there may be some and there is room for them, when the next known one
 * falls due, and once every poll interval in any case.
 */
export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #pulse = new Pulse();
  readonly #schedule: Schedule;
  readonly #round: ClaimRound;
  #turnedAt = monotonicMs();
  /** Then the end of a job matters even if there is nothing to claim: it may be the end of all. */
  #isOnce = false;
  #isResting = false;
  /** Ends when the claim that was lent is over. */
  #lent: Promise<void> | undefined;

  constructor(options: ClaimerOptions) {
    this.#options = options;
    this.#schedule = new Schedule(options);
    this.#round = new ClaimRound(options, this.#schedule);
  }

  /** When the loop last turned, on the monotonic clock. */
  get turnedAt(): number {
    return this.#turnedAt;
  }

  /** There may be jobs now. */
  nudge(): void {
    this.#schedule.nudge();
    this.#options.limits.nudge();
    this.#pulse.nudge();
  }

  /** A place in a limit may be free, or limits have changed. */
  nudgeLimited(): void {
    this.#options.limits.freed();
    this.#pulse.nudge();
  }

  /** Returned jobs may lie behind our marks; scan from the start. */
  startOver(): void {
    this.#round.startOver();
    this.nudge();
  }

  /** A named queue that we held is free for its next job. */
  queueReleased(queueId: number): void {
    this.#round.queueReleased(queueId);
    this.nudge();
  }

  /** There may be room now. */
  wake(): void {
    if (this.#schedule.isHungry || this.#isOnce || monotonicMs() >= this.#options.limits.scanAt) this.#pulse.nudge();
  }

  /** A job will be due then. */
  expect(inMs: number): void {
    const at = monotonicMs() + inMs;
    this.#options.limits.expect(at);
    if (this.#schedule.expect(at)) this.#pulse.nudge();
  }

  /** Another process has scanned for jobs like ours, and will again when the next one falls due. */
  rely(dueInMs: number | null): void {
    if (this.#schedule.rely(monotonicMs(), dueInMs, this.#options.fleet.turn)) this.#pulse.nudge();
  }

  /** A claim of limited jobs for a statement that frees their places; undefined unless there is nothing to claim before that. */
  lend(): LentClaim | undefined {
    const { limits } = this.#options;
    if (!this.#isResting || this.#lent || this.#schedule.isHungry) return undefined;
    const claim = limits.isQuick && limits.isWaiting(monotonicMs()) ? this.#round.lend() : undefined;
    if (!claim) return undefined;
    const over = deferred();
    this.#lent = over.promise;
    const onOver = (): void => {
      this.#lent = undefined;
      over.resolve();
      this.#pulse.nudge();
    };
    return { ...claim, onOver };
  }

  /** Claims until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { room, strays, pollInterval, limits } = this.#options;
    while (!signal.aborted) {
      await this.#lent;
      const now = monotonicMs();
      this.#turnedAt = now;
      this.#schedule.turn(now);
      const free = this.#schedule.isHungry || now >= limits.scanAt ? room() : null;
      if (now >= strays.searchAt) await this.#searchStrays();
      else if (free) await this.#round.run(free, signal);
      else await this.#rest(Math.min(this.#nextAt(now) - now, pollInterval()), signal);
    }
    await this.#lent;
  }

  async #rest(ms: number, signal: AbortSignal): Promise<void> {
    this.#isResting = true;
    await this.#pulse.wait(ms, signal);
    this.#isResting = false;
  }

  /** What was due at `now` waits for room. What falls due from then on has yet to be noticed, even if its time has come meanwhile. */
  #nextAt(now: number): number {
    const { strays, limits } = this.#options;
    const limitedAt = limits.scanAt > now ? limits.scanAt : Infinity;
    return Math.min(this.#schedule.isHungry ? Infinity : this.#schedule.nextScanAt, limitedAt, strays.searchAt);
  }

  /** Claims until a scan finds nothing and `isQuiet` says that nothing more can come of what runs. */
  async runUntilEmpty(signal: AbortSignal, isQuiet: () => boolean): Promise<void> {
    this.#isOnce = true;
    let busyAt = monotonicMs();
    while (!signal.aborted) {
      this.#turnedAt = monotonicMs();
      if (!isQuiet()) busyAt = this.#turnedAt;
      if (this.#turnedAt >= this.#options.strays.searchAt) await this.#searchStrays();
      const limitedInMs = this.#options.limits.scanAt - monotonicMs();
      const isDue = this.#schedule.isHungry || limitedInMs <= 0;
      const room = isDue ? this.#options.room() : null;
      if (room) {
        await this.#round.run(room, signal);
        this.#throwIfHopeless();
      } else if (this.#mustScanAgain) {
        await this.#pulse.wait(this.#schedule.nextScanAt - monotonicMs(), signal);
        this.#schedule.nudge();
      } else if (limitedInMs > 0 && limitedInMs <= maxLimitRestMs && this.#turnedAt - busyAt <= maxLimitRestMs) {
        // A limit may admit a job soon.
        await this.#pulse.wait(limitedInMs, signal);
      } else if (isQuiet()) {
        if (!isDue) return;
        await this.#pulse.wait(quietRestMs, signal);
      } else {
        await this.#pulse.wait(this.#options.pollInterval(), signal);
      }
    }
  }

  #throwIfHopeless(): void {
    const { errors } = this.#schedule;
    const { error } = this.#round;
    if (errors > maxErrorsWhenOnce || (errors > 0 && !isTransient(error))) throw error;
  }

  /** The last claim did not see everything. */
  get #mustScanAgain(): boolean {
    const { isHungry, errors, contentions } = this.#schedule;
    if (isHungry) return false;
    return errors > 0 || this.#round.hasLeftOut || (contentions > 0 && contentions < maxContendedWhenOnce);
  }

  /** What comes back may be for us. */
  async #searchStrays(): Promise<void> {
    try {
      await this.#options.strays.search();
      this.#schedule.nudge();
      // Its places are free again.
      this.#options.limits.freed();
    } catch (error) {
      this.#options.outage.trouble(this.#round, error);
    }
  }
}
