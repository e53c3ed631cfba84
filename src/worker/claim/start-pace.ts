/** A sample takes at least this long, or until there is nothing left to start. */
const sampleMs = 5;
/** Fewer starts say nothing about the pace. */
const fewStarts = 8;
const share = { down: 0.5, up: 0.25 };

/** How many jobs that have a time to start a pool starts in a millisecond, measured while it holds some. */
export class StartPace {
  #perMs: number | undefined;
  #starts = 0;
  #since = 0;

  /** From now on there is something to start. */
  begin(now: number): void {
    this.#starts = 0;
    this.#since = now;
  }

  started(now: number): void {
    this.#starts++;
    if (now - this.#since >= sampleMs) this.#learn(now);
  }

  /** There is nothing left to start. */
  end(now: number): void {
    if (this.#starts >= fewStarts) this.#learn(now);
  }

  /** How many will start in that time; Infinity before anything was measured. */
  within(ms: number): number {
    return this.#perMs === undefined ? Infinity : Math.floor(this.#perMs * ms);
  }

  #learn(now: number): void {
    const perMs = this.#starts / Math.max(0.1, now - this.#since);
    const known = this.#perMs ?? perMs;
    this.#perMs = known + (perMs - known) * (perMs < known ? share.down : share.up);
    this.begin(now);
  }
}
