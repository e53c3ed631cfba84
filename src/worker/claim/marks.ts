import type { Mark } from "../../db/statements/claim.ts";

/** With more priorities than this, the marks would cost more than they save. */
const maxMarks = 100;

/** Where the claims so far stopped in each priority. Marks only save time: a scan without them finds everything too. */
export class Marks {
  readonly #byPriority = new Map<number, Mark>();

  /** Priorities that a claim did not reach keep the marks they had. */
  learn(marks: readonly Mark[]): void {
    for (const mark of marks) this.#byPriority.set(mark[0], mark);
    if (this.#byPriority.size > maxMarks) this.clear();
  }

  /** Empty if the next scan has to start from the beginning. */
  list(): readonly Mark[] {
    return [...this.#byPriority.values()];
  }

  clear(): void {
    this.#byPriority.clear();
  }
}
