import { clearTimeout, monotonicMs, setTimeout } from "../../util/timers.ts";

/** No job stays claimed for longer than this without being started. */
export const maxHoldMs = 200;
/** With every slot busy and nothing started for this long, what is held is better off in another process. */
const stallMs = 40;
/** How often to check for a stall. */
const checkMs = 20;
/** How often to check at the least if the user allows to hold for long: what has to wait for its queue may have come since. */
const recheckMs = 50;
/**
 * When to check a suspicion again. A process that was not scheduled frees its slots within one turn of the event loop, and starts what it
 * holds within a few.
 */
const stallRecheckMs = 1;
const overdueRecheckMs = 25;

export interface Held {
  /** When the oldest job was claimed that could start, and the oldest that waits for another one of its queue; Infinity without one. */
  readonly readySince: number;
  readonly waitingSince: number;
}

export interface HoldWatchOptions {
  readonly held: () => Held;
  readonly hasFreeSlot: () => boolean;
  /** How long a job may be held that could start, if the user has set it; then a stall does not count. */
  readonly ttlMs: number | undefined;
  /** Nothing moves: nothing that is held will start soon. */
  readonly onStall: () => void;
  /** Jobs claimed before then have been held for too long. */
  readonly onOverdue: (before: { readonly ready: number; readonly waiting: number }) => void;
}

/**
 * Sees to it that a job which has not started is not held for long: while it is, `remove_job` and the other functions that change waiting
 * jobs have to treat it as running. Every suspicion is checked a second time.
 */
export class HoldWatch {
  readonly #options: HoldWatchOptions;
  #startedAt = 0;
  #suspicion: "stalled" | "overdue" | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: HoldWatchOptions) {
    this.#options = options;
  }

  /** A job was started. */
  started(at: number): void {
    this.#startedAt = at;
  }

  /** Watches for as long as something is held. */
  watch(): void {
    if (this.#timer || this.#isClosed) return;
    const held = this.#options.held();
    if (Math.min(held.readySince, held.waitingSince) === Infinity) {
      this.#suspicion = undefined;
      return;
    }
    this.#timer = setTimeout(() => this.#check(), this.#restMs(held));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #restMs({ readySince, waitingSince }: Held): number {
    const { ttlMs } = this.#options;
    if (this.#suspicion) return this.#suspicion === "stalled" ? stallRecheckMs : overdueRecheckMs;
    if (ttlMs === undefined) return checkMs;
    return Math.max(1, Math.min(Math.min(readySince + ttlMs, waitingSince + maxHoldMs) - monotonicMs(), recheckMs));
  }

  #check(): void {
    this.#timer = undefined;
    const { held, ttlMs, onStall, onOverdue } = this.#options;
    const { readySince, waitingSince } = held();
    const now = monotonicMs();
    const before = { ready: now - (ttlMs ?? maxHoldMs), waiting: now - maxHoldMs };
    const isOverdue = readySince <= before.ready || waitingSince <= before.waiting;
    const seen = this.#isStalled(readySince, now) ? "stalled" : isOverdue ? "overdue" : undefined;
    const isSure = seen !== undefined && seen === this.#suspicion;
    this.#suspicion = isSure ? undefined : seen;
    if (isSure && seen === "stalled") onStall();
    else if (isSure) onOverdue(before);
    this.watch();
  }

  #isStalled(readySince: number, now: number): boolean {
    if (this.#options.ttlMs !== undefined || readySince === Infinity || this.#options.hasFreeSlot()) return false;
    return now - Math.max(this.#startedAt, readySince) >= stallMs;
  }
}
