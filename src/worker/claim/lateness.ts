/** Missed starts in a row after which a task is given more time. */
const patience = 2;
const firstMs = 100;
/** The database grants no more. */
const maxMs = 5_000;
/** How many jobs with a time to start are claimed ahead of free slots at first. */
const firstAhead = 16;
/** How many must start in time for each one that did not, before any is claimed ahead again. */
const penance = 4;

/**
 * By how much starts may be later than the slack of their rate allows, for each task. A busy process, or one far from its database, may miss every
 * start of a rate with a short period. The more it missed in a row, the more time it asks for. That costs tokens, so it ends when a start would have
 * been in time without it.
 */
export class Lateness {
  readonly #missesByTask = new Map<number, number>();
  #ahead = firstAhead;
  #debt = 0;

  missed(taskId: number): void {
    this.#missesByTask.set(taskId, (this.#missesByTask.get(taskId) ?? 0) + 1);
  }

  /** A start was in time, and needed no more. */
  keptTime(taskId: number): void {
    this.#missesByTask.delete(taskId);
    if (this.#debt > 0) this.#debt--;
    else this.#ahead++;
  }

  /** So many jobs that were claimed ahead of free slots did not start in time. */
  missedAhead(jobs: number): void {
    this.#ahead = firstAhead;
    this.#debt += penance * jobs;
  }

  /** How many may be claimed ahead of free slots: more as long as all start in time. */
  get ahead(): number {
    return this.#debt > 0 ? 0 : this.#ahead;
  }

  /** In milliseconds, by the id of the task. */
  get byTask(): Record<string, number> {
    const lates: Record<string, number> = {};
    for (const [taskId, misses] of this.#missesByTask) {
      if (misses >= patience) lates[taskId] = Math.min(maxMs, firstMs * 2 ** (misses - patience));
    }
    return lates;
  }
}
