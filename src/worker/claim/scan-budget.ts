/** A costly scan is made again when this many times its own cost has gone by. */
const share = 10;
/** What a scan may take without counting as costly: this much, and a little for every job it found. */
const cheapMs = 2;

/**
 * Keeps a scan whose cost depends on what lies in the table to a tenth of the time. Finished rows that are not vacuumed yet, because a
 * transaction somewhere holds them back, cost a scan as much as live ones.
 */
export class ScanBudget {
  readonly #cheapMsPerJob: number;
  #at = 0;
  #lastMs = 0;
  #costMs = 0;

  constructor(cheapMsPerJob: number) {
    this.#cheapMsPerJob = cheapMsPerJob;
  }

  get isCostly(): boolean {
    return this.#costMs > 0;
  }

  /** When the next scan may be made. */
  get dueAt(): number {
    return this.#at + this.#costMs * share;
  }

  /** One slow scan may just mean that the server was busy, so it takes two in a row to count as costly. */
  spend(now: number, tookMs: number, jobs: number): void {
    const costMs = tookMs > cheapMs + this.#cheapMsPerJob * jobs ? tookMs : 0;
    this.#at = now;
    this.#costMs = Math.min(this.#lastMs, costMs);
    this.#lastMs = costMs;
  }
}
