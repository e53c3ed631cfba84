/** A buffered job that has not moved for this long is better off with somebody else. */
const stallMs = 40;

/** How soon to look a second time: after one turn of the event loop, in which jobs get started if there are slots for them. */
const secondLookMs = 1;

/** So many times in a row one job must have kept the event loop: once may be the process that got no processor. */
const keptLooks = 2;

export interface Held {
  /** Jobs are held ahead. */
  readonly isHolding: () => boolean;
  /** The next of them would find a free slot: only the event loop, or the settling, is behind. */
  readonly canGoOn: () => boolean;
}

/**
 * Notices when jobs that are held ahead stand still because of others that run: all slots are busy, or tasks keep the event loop,
 * one after the other. A process that got no processor, or that waits for the database, is late with everything, and others would
 * be no sooner. So it takes a second look to be sure.
 */
export class StallWatch {
  readonly #lifeMs: number | undefined;
  readonly #onStall: () => void;
  #movedAt = 0;
  #filledAt = 0;
  #moves = 0;
  /** How many jobs had been started at the last look, if that found none for too long. */
  #suspectedAt: number | undefined;
  #kept = 0;
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
    this.#moves++;
  }

  /** Watches for as long as something is held. */
  watch(held: Held): void {
    if (this.#timer || this.#isClosed) return;
    const limitMs = this.#lifeMs ?? stallMs;
    const restMs = this.#suspectedAt === undefined ? (this.#lifeMs ?? stallMs / 2) : secondLookMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const since = this.#lifeMs === undefined ? this.#movedAt : this.#filledAt;
      const isLate = held.isHolding() && performance.now() - since >= limitMs;
      const isSure = isLate && this.#suspectedAt !== undefined && this.#isConfirmed(held, this.#suspectedAt);
      this.#suspectedAt = isLate && !isSure ? this.#moves : undefined;
      if (this.#suspectedAt === undefined) this.#kept = 0;
      if (isSure) this.#onStall();
      else if (held.isHolding()) this.watch(held);
    }, restMs);
  }

  #isConfirmed({ canGoOn }: Held, suspectedAt: number): boolean {
    if (this.#lifeMs !== undefined || !canGoOn()) return true;
    // Exactly one was started in that turn of the event loop, and kept it. More of them mean that they move; none, that
    // something else is waited for.
    this.#kept = this.#moves === suspectedAt + 1 ? this.#kept + 1 : 0;
    return this.#kept >= keptLooks;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
