/** A costly look is made again when this many times its own cost has gone by. */
const share = 10;

/** Keeps a look whose cost depends on what lies in the table to a tenth of the time. */
export class LookBudget {
  #at = 0;
  #costMs = 0;

  isDue(now: number): boolean {
    // The clock may have been set back meanwhile.
    return now < this.#at || now - this.#at >= this.#costMs * share;
  }

  spend(now: number, costMs: number): void {
    this.#at = now;
    this.#costMs = costMs;
  }

  reset(): void {
    this.spend(0, 0);
  }
}
