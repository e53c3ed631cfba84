import type { Database } from "../db/database.ts";
import { isAway, isRepeatable } from "../db/sqlstate.ts";
import { claimJobs, type Mark } from "../db/statements/claim-jobs.ts";
import type { Job } from "../job.ts";
import { backoffMs } from "../util/backoff.ts";
import { Pulse } from "../util/pulse.ts";
import { LookBudget } from "./look-budget.ts";
import type { Outage } from "./outage.ts";
import { readClaim } from "./read-claim.ts";
import type { Strays } from "./strays.ts";
import type { TaskIds } from "./task-ids.ts";

/** What a claim may take. */
export interface Room {
  /** How many jobs would find a place. */
  readonly jobs: number;
  /** How many of those may be of one named queue. */
  readonly perQueue: number;
}

export interface ClaimerOptions {
  readonly database: Database;
  readonly poolId: () => string;
  readonly tasks: () => Promise<TaskIds>;
  /** Null when there is no room, or too little to be worth a statement now. */
  readonly room: () => Room | null;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  readonly acceptedFlags: readonly string[] | null;
  readonly useNodeTime: boolean;
  /** The server may forget a claim when it crashes. */
  readonly relaxed: boolean;
  readonly pollInterval: () => number;
  readonly outage: Outage;
  readonly strays: Strays;
  readonly onClaiming: () => void;
  /** Is told the jobs, in the order they should start, and how many bytes they came in. */
  readonly onClaimed: (jobs: readonly Job[], wanted: number, bytes: number) => void;
  readonly onError: (error: unknown) => void;
}

const errorBackoff = { minMs: 200, maxMs: 5_000, factor: 1.5 };
/** A claim that ran into another one: look again soon, and less often if the other does not let go. */
const contendedBackoff = { minMs: 10, maxMs: 500, factor: 1.5 };
/** How long a run that is to end waits until it looks whether it may. */
const quietRestMs = 15;
/** How long to stay off the head of the line after finding it full of jobs that are not for us. */
const offOrderMs = 1_000;
/** A run that is to end when the work is done does not wait for ever for a database, or for others to let go. */
const maxErrorsWhenOnce = 8;
const maxContendedWhenOnce = 10;
/** Node's timers fire at once when asked for more. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Asks the database for jobs, for the whole pool: when there may be some and there is room for them, when the next known one
 * falls due, and once every poll interval in any case.
 */
export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #pulse = new Pulse();
  #isHungry = true;
  #lookAt = 0;
  #errors = 0;
  #error: unknown;
  #isContended = false;
  #contentions = 0;
  /** Then the end of a job matters even if there is nothing to claim: it may be the end of all. */
  #isOnce = false;
  #marks: readonly Mark[] = [];
  readonly #fullLooks = new LookBudget();
  readonly #looksBetween = new LookBudget();
  #offOrderUntil = 0;

  constructor(options: ClaimerOptions) {
    this.#options = options;
  }

  /** There may be jobs now. */
  nudge(): void {
    this.#isHungry = true;
    this.#pulse.nudge();
  }

  /** Jobs are in line again that the last looks went past. */
  startOver(): void {
    this.#marks = [];
    this.#fullLooks.reset();
    this.#looksBetween.reset();
    this.nudge();
  }

  /** There may be room now. */
  wake(): void {
    if (this.#isHungry || this.#isOnce) this.#pulse.nudge();
  }

  /** A job will be due then (by this process's clock). */
  expect(inMs: number): void {
    const at = Date.now() + inMs;
    if (at >= this.#lookAt) return;
    this.#lookAt = at;
    this.#pulse.nudge();
  }

  /** Claims until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const now = Date.now();
      if (now >= this.#lookAt) this.#isHungry = true;
      const room = this.#isHungry ? this.#options.room() : null;
      if (now >= this.#options.strays.lookAt) await this.#lookForStrays();
      else if (room) await this.#claim(room);
      // Never longer than a poll, even if the clock was set back meanwhile.
      else await this.#rest(Math.min(this.#nextLookAt - now, this.#options.pollInterval()), signal);
    }
  }

  get #nextLookAt(): number {
    return Math.min(this.#isHungry ? Infinity : this.#lookAt, this.#options.strays.lookAt);
  }

  /** Claims until a look finds nothing and `isQuiet` says that nothing more can come of what runs. */
  async runUntilEmpty(signal: AbortSignal, isQuiet: () => boolean): Promise<void> {
    this.#isOnce = true;
    while (!signal.aborted) {
      if (Date.now() >= this.#options.strays.lookAt) await this.#lookForStrays();
      const room = this.#isHungry ? this.#options.room() : null;
      if (room) {
        await this.#claim(room);
        if (this.#errors > maxErrorsWhenOnce || (this.#errors > 0 && !willPass(this.#error))) throw this.#error;
      } else if (this.#errors > 0 || (this.#isContended && this.#contentions < maxContendedWhenOnce)) {
        await this.#rest(this.#lookAt - Date.now(), signal);
        this.#isHungry = true;
      } else if (isQuiet()) {
        if (!this.#isHungry) return;
        await this.#pulse.wait(quietRestMs, signal);
      } else {
        await this.#rest(this.#options.pollInterval(), signal);
      }
    }
  }

  #rest(ms: number, signal: AbortSignal): Promise<void> {
    return this.#pulse.wait(Math.min(ms, maxTimerMs), signal);
  }

  /** What comes back may be for us. */
  async #lookForStrays(): Promise<void> {
    try {
      await this.#options.strays.look();
      this.#isHungry = true;
    } catch (error) {
      this.#options.outage.trouble(this, error);
    }
  }

  async #claim(room: Room): Promise<void> {
    const { database, useNodeTime, pollInterval, outage, strays } = this.#options;
    // What nudges us from here on happened after this look began.
    this.#isHungry = false;
    this.#options.onClaiming();
    try {
      const { ids, nameById } = await this.#options.tasks();
      const forbidden = await this.#options.forbiddenFlags();
      const poolId = this.#options.poolId();
      const startedAt = Date.now();
      // Rows that are finished but not yet vacuumed cost a look as much as live ones, so a busy claimer starts where the last
      // look ended. What arrived before those marks meanwhile is found by the next full look.
      const marks = this.#fullLooks.isDue(startedAt) ? [] : this.#marks;
      const betweenMarks = this.#looksBetween.isDue(startedAt);
      const [result] = await database.run(claimJobs, {
        poolId,
        taskIds: ids,
        wanted: room.jobs,
        perQueue: room.perQueue,
        forbidden: forbidden && forbidden.length > 0 ? forbidden : null,
        accepted: this.#options.acceptedFlags,
        clock: useNodeTime ? new Date() : null,
        marks,
        betweenMarks,
        offOrder: startedAt < this.#offOrderUntil,
        relaxed: this.#options.relaxed,
      });
      outage.well(this);
      this.#errors = 0;
      const now = Date.now();
      if (marks.length === 0) this.#fullLooks.spend(now, now - startedAt);
      if (marks.length === 0 || betweenMarks) this.#looksBetween.spend(now, result?.searched_ms ?? 0);
      const { jobs, bytes } = await readClaim(result?.jobs, { database, poolId, nameById, strays });

      const isFull = jobs.length >= room.jobs;
      if (isFull && result?.reached) this.#remember(JSON.parse(result.reached), marks);
      else this.#marks = [];
      if (result?.polluted) this.#offOrderUntil = now + offOrderMs;
      // Behind the marks there may be more: jobs that were passed over, or that came in after the last full look.
      this.#isHungry ||= isFull || marks.length > 0;
      this.#isContended = result?.contended ?? false;
      this.#contentions = this.#isContended ? this.#contentions + 1 : 0;
      const restMs = Math.min(
        this.#isContended ? backoffMs(contendedBackoff, this.#contentions - 1) : Infinity,
        result?.due_in_ms ?? Infinity,
      );
      this.#lookAt = now + Math.min(pollInterval(), restMs);
      this.#options.onClaimed(jobs, room.jobs, bytes);
    } catch (error) {
      outage.trouble(this, error);
      outage.suspect(error);
      this.#options.onError(error);
      this.#isHungry = false;
      this.#lookAt = Date.now() + Math.min(pollInterval(), backoffMs(errorBackoff, this.#errors));
      this.#errors++;
      this.#error = error;
    }
  }

  /** Priorities that this look did not come to keep the marks they had. */
  #remember(reached: readonly Mark[], before: readonly Mark[]): void {
    const markByPriority = new Map([...before, ...reached].map((mark) => [mark[0], mark]));
    this.#marks = [...markByPriority.values()];
  }
}

function willPass(error: unknown): boolean {
  return isAway(error) || isRepeatable(error);
}
