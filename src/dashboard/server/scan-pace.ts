import type { JobFilter } from "../../index.ts";

/** How long a request may look at jobs. */
const budgetMs = 100;
const stepMs = 40;
const mostPerStep = 200_000;

/** How many jobs to look at in one step, so that a request takes a moment whatever the jobs and the machine are like. */
export class ScanPace {
  step: number;
  readonly #startedAt = process.hrtime.bigint();

  /** A search term is looked for in whole payloads, and an error in the history of each job. */
  constructor({ search, error }: JobFilter) {
    this.step = error !== undefined ? 500 : search !== undefined ? 5_000 : 20_000;
  }

  get hasTime(): boolean {
    return this.#elapsedMs() < budgetMs;
  }

  /** Does one step, and makes the next one so long that it takes a few hundredths of a second. */
  async time<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#elapsedMs();
    const result = await work();
    const tookMs = Math.max(1, this.#elapsedMs() - before);
    const fitting = Math.round((this.step * stepMs) / tookMs);
    this.step = Math.max(500, Math.min(mostPerStep, this.step * 4, fitting));
    return result;
  }

  #elapsedMs(): number {
    return Number(process.hrtime.bigint() - this.#startedAt) / 1e6;
  }
}
