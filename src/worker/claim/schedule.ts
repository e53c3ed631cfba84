import { backoffMs } from "../../util/backoff.ts";

export interface ScheduleOptions {
  readonly pollInterval: () => number;
  readonly random?: () => number;
}

/** Why a scan begins. */
export interface Occasion {
  /** There may be jobs of tasks without limits. */
  readonly isHungry: boolean;
  /** Only because time has come: no notification asked for it, and nothing was in the last scan's way. */
  readonly isTimed: boolean;
}

/** What a scan found. */
export interface ScanResult {
  /** When the next known job falls due; not above 0 if another transaction holds one that is due. */
  readonly dueInMs: number | null;
  /** It found as many jobs as it was asked for, so there may be more. */
  readonly isFull: boolean;
  /** When to scan what this scan left out; Infinity if that is nothing. */
  readonly leftOutAt: number;
}

const errorBackoff = { minMs: 200, maxMs: 5_000, factor: 1.5 };
/** Another transaction holds a job that is due: scan again soon, and less often if it does not let go. */
const contendedBackoff = { minMs: 10, maxMs: 500, factor: 1.5 };
/** How much later than a process that knows of a due job others claim, if they do not hear of it. */
const relyMs = { min: 50, max: 250 };
/** After another's scan the first in line polls after this share of the poll interval, the last one after all of it: so the first is heard of before the second begins. */
const firstPoll = 0.9;
/** How long to wait for a heartbeat after the database did not know us as alive. */
const doubtMs = 200;

/** When to scan next for jobs of tasks without limits. All times are on the monotonic clock. */
export class Schedule {
  readonly #pollInterval: () => number;
  readonly #random: () => number;
  #isHungry = true;
  /** Time has come, not a notification. */
  #isTimed = false;
  /** When a job falls due, as far as we know. */
  #scanAt = Infinity;
  /** What was expected since the last scan began: its answer may not know of it yet. */
  #expectAt = Infinity;
  #pollAt = 0;
  /** When a job falls due, as another process announced it, and a little later: that process will claim it. */
  #relyAt = Infinity;
  #errors = 0;
  #contentions = 0;

  constructor({ pollInterval, random = Math.random }: ScheduleOptions) {
    this.#pollInterval = pollInterval;
    this.#random = random;
  }

  /** There may be jobs now. */
  get isHungry(): boolean {
    return this.#isHungry;
  }

  get nextScanAt(): number {
    return Math.min(this.#scanAt, this.#pollAt, this.#relyAt);
  }

  /** Scans that failed since the last one that did not. */
  get errors(): number {
    return this.#errors;
  }

  /** Scans in a row that something was in the way of: other transactions held due jobs, or we were not known as alive. */
  get contentions(): number {
    return this.#contentions;
  }

  nudge(): void {
    this.#isHungry = true;
  }

  /** A job will be due then. True if that is earlier than all that was known. */
  expect(at: number): boolean {
    this.#expectAt = Math.min(this.#expectAt, at);
    if (at >= this.#scanAt) return false;
    this.#scanAt = at;
    return true;
  }

  /**
   * Another process has scanned for jobs like ours, and will again when the next one falls due. It counts as our poll, until others have to
   * hear of us. `place` is ours in the line of those who poll next, from 0 to 1. True if our next scan is earlier than before.
   */
  rely(now: number, dueInMs: number | null, { presenceAt, place }: { presenceAt: number; place: number }): boolean {
    const before = this.nextScanAt;
    const pollAt = now + this.#pollInterval() * (firstPoll + (1 - firstPoll) * place);
    this.#pollAt = Math.max(this.#pollAt, Math.min(pollAt, presenceAt));
    const laterMs = relyMs.min + this.#random() * (relyMs.max - relyMs.min);
    this.#relyAt = dueInMs === null ? Infinity : now + dueInMs + laterMs;
    return this.nextScanAt < before;
  }

  /** Time goes on. */
  turn(now: number): void {
    this.#isTimed = now >= this.nextScanAt;
    if (this.#isTimed) this.#isHungry = true;
  }

  /** A scan begins: what is heard from here on happened after it. */
  begin(): Occasion {
    const occasion = { isHungry: this.#isHungry, isTimed: this.#isTimed && this.#contentions === 0 };
    this.#isHungry = false;
    this.#isTimed = false;
    this.#expectAt = Infinity;
    return occasion;
  }

  /** The database has answered. */
  answered(): void {
    this.#errors = 0;
  }

  /** The database does not know us as alive, so nothing was scanned. Returns when to try again. */
  doubted(now: number): number {
    this.#contentions++;
    return this.#retryAt(now + doubtMs);
  }

  /** A scan failed. Returns when to try again; after a conflict between transactions that is soon. */
  failed(now: number, isConflict: boolean): number {
    this.#isHungry = false;
    const restMs = backoffMs(isConflict ? contendedBackoff : errorBackoff, this.#errors, this.#random());
    this.#errors++;
    return this.#retryAt(now + Math.min(this.#pollInterval(), restMs));
  }

  scanned(now: number, { dueInMs, isFull, leftOutAt }: ScanResult): void {
    this.#isHungry ||= isFull;
    const isContended = dueInMs !== null && dueInMs <= 0;
    const contendedMs = backoffMs(contendedBackoff, this.#contentions, this.#random());
    this.#contentions = isContended ? this.#contentions + 1 : 0;
    const restMs = isContended ? contendedMs : (dueInMs ?? Infinity);
    this.#rest(now, Math.min(now + restMs, leftOutAt));
  }

  /** There was nothing to scan for. */
  skipped(now: number): void {
    this.#rest(now, Infinity);
  }

  #rest(now: number, nextAt: number): void {
    this.#pollAt = now + this.#pollInterval();
    this.#relyAt = Infinity;
    this.#scanAt = Math.min(nextAt, this.#expectAt);
  }

  #retryAt(at: number): number {
    this.#scanAt = at;
    this.#pollAt = at;
    return at;
  }
}
