/** A buffered job that has not moved for this long is better off with somebody else. */
const stallMs = 40;

/** Notices when jobs that are held ahead stand still. */
export class StallWatch {
  readonly #lifeMs: number | undefined;
  readonly #onStall: () => void;
  #movedAt = 0;
  #filledAt = 0;
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
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (!isHolding()) return;
        const since = this.#lifeMs === undefined ? this.#movedAt : this.#filledAt;
        if (performance.now() - since >= limitMs) this.#onStall();
        else this.watch(isHolding);
      },
      this.#lifeMs ?? stallMs / 2,
    );
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
