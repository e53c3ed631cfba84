/** Missed starts in a row after which a task is given more time. */
const patience = 2;
const firstMs = 100;
/** The database grants no more. */
const maxMs = 5_000;

/**
 * By how much starts may be later than the slack of their rate allows, for each task. A busy process, or one far from its database, may miss every
 * start of a rate with a short period. The more it missed in a row, the more time it asks for. That costs tokens, so it ends when a start would have
 * been in time without it.
 */
export class Lateness {
  readonly #missesByTask = new Map<number, number>();

  missed(taskId: number): void {
    this.#missesByTask.set(taskId, (this.#missesByTask.get(taskId) ?? 0) + 1);
  }

  /** A start was in time, and needed no more. */
  keptTime(taskId: number): void {
    this.#missesByTask.delete(taskId);
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
