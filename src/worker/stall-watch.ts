/** A buffered job that has not moved for this long is better off with somebody else. */
const stallMs = 40;

/** How soon to look a second time: after one turn of the event loop, in which jobs get started if there are slots for them. */
const secondLookMs = 1;

/** A process that got less of a processor than this while it had something to do did not hold itself up. */
const busyShare = 0.5;

export interface Held {
  /** Jobs are held ahead. */
  readonly isHolding: () => boolean;
  /** The next of them would find a free slot: only the event loop, or the settling, is behind. */
  readonly canGoOn: () => boolean;
}

/**
 * Notices when jobs that are held ahead stand still because of others that run. A process that got no processor, or that waits
 * for the database, is late with everything, and others would be no sooner. It takes two looks to be sure, because one task may
 * have kept the event loop for once.
 */
export class StallWatch {
  readonly #lifeMs: number | undefined;
  readonly #onStall: () => void;
  #movedAt = 0;
  #filledAt = 0;
  #isSuspected = false;
  #lookedAt = 0;
  #cpuBefore: NodeJS.CpuUsage | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `lifeMs` is how long a claimed job may be held, if the user has set it; without it, what counts is whether jobs get started. */
  constructor(lifeMs: number | undefined, onStall: () => void) {
    this.#lifeMs = lifeMs;
    this.#onStall = onStall;
  }

  filled(): void {
    this.#movedAt = performance.now();
    this.#filledAt = this.#movedAt;
  }

  moved(at: number): void {
    this.#movedAt = at;
  }

  /** Watches for as long as something is held. */
  watch(held: Held): void {
    if (this.#timer || this.#isClosed) return;
    const limitMs = this.#lifeMs ?? stallMs;
    const restMs = this.#isSuspected ? secondLookMs : (this.#lifeMs ?? stallMs / 2);
    this.#lookedAt = performance.now();
    this.#cpuBefore = process.cpuUsage();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const since = this.#lifeMs === undefined ? this.#movedAt : this.#filledAt;
      const isLate = held.isHolding() && performance.now() - since >= limitMs && !this.#isExcused(held);
      const isSure = isLate && this.#isSuspected;
      this.#isSuspected = isLate && !isSure;
      if (isSure) this.#onStall();
      else if (held.isHolding()) this.watch(held);
    }, restMs);
  }

  /** Jobs could go on, and it is not the process itself that was too busy to let them. */
  #isExcused({ canGoOn }: Held): boolean {
    if (this.#lifeMs !== undefined || !canGoOn()) return false;
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return (user + system) / 1000 < (performance.now() - this.#lookedAt) * busyShare;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
