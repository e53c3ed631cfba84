/** A buffered job that has not moved for this long is better off with somebody else. */
const stallMs = 40;

/** How soon to look a second time: after one turn of the event loop, in which jobs get started if there are slots for them. */
const secondLookMs = 1;

/**
 * Notices when jobs that are held ahead stand still. It takes two looks to be sure, because time also goes by while the whole
 * process stands still: it got no processor, or one task did not let go of the event loop.
 */
export class StallWatch {
  readonly #lifeMs: number | undefined;
  readonly #onStall: () => void;
  #movedAt = 0;
  #filledAt = 0;
  #isSuspected = false;
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
  watch(isHolding: () => boolean): void {
    if (this.#timer || this.#isClosed) return;
    const limitMs = this.#lifeMs ?? stallMs;
    const restMs = this.#isSuspected ? secondLookMs : (this.#lifeMs ?? stallMs / 2);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const since = this.#lifeMs === undefined ? this.#movedAt : this.#filledAt;
      const isLate = isHolding() && performance.now() - since >= limitMs;
      const isSure = isLate && this.#isSuspected;
      this.#isSuspected = isLate && !isSure;
      if (isSure) this.#onStall();
      else if (isHolding()) this.watch(isHolding);
    }, restMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
