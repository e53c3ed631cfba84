import { isAway } from "../db/sqlstate.ts";
import type { Logger } from "../logger.ts";
import { NoTasksError } from "./task-ids.ts";

const idle =
  "This worker has no tasks, so it runs nothing: put a file into its task folder, or a function into 'taskList'.";

/**
 * Says once that the database is in trouble, and once that it is well again, however many parts of a pool notice and in
 * whatever order they recover.
 */
export class Outage {
  readonly #logger: Logger;
  readonly #onSuspect: (error: unknown) => void;
  readonly #troubled = new Set<object>();
  #since = 0;
  #isIdle = false;

  constructor(logger: Logger, onSuspect: (error: unknown) => void) {
    this.#logger = logger;
    this.#onSuspect = onSuspect;
  }

  /** `part` is whoever noticed; the outage lasts until each of them is well. */
  trouble(part: object, error: unknown): void {
    if (error instanceof NoTasksError) {
      if (!this.#isIdle) this.#logger.warn(idle);
      this.#isIdle = true;
      return;
    }
    const isFirst = this.#troubled.size === 0;
    this.#troubled.add(part);
    if (!isFirst) return;
    this.#since = Date.now();
    const reason = error instanceof Error ? error.message || error.name : String(error);
    const what = isAway(error) ? "Lost the database" : "The database refused a statement";
    this.#logger.error(`${what} (${reason}); trying again until it answers. Running jobs go on.`, { error });
  }

  /** Something that changes jobs has failed, and may have been done all the same. */
  suspect(error: unknown): void {
    this.#onSuspect(error);
  }

  well(part: object): void {
    this.#isIdle = false;
    if (!this.#troubled.delete(part) || this.#troubled.size > 0) return;
    const seconds = ((Date.now() - this.#since) / 1000).toFixed(1);
    this.#logger.info(`The database answers again after ${seconds} s.`);
  }

  /** The part has given up, so it will not be well any more. */
  leave(part: object): void {
    this.#troubled.delete(part);
  }
}
