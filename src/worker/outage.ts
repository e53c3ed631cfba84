import { isAway } from "../db/sqlstate.ts";
import type { Logger } from "../logger.ts";

/** Says once that the database is in trouble, and once that it is well again, however many parts of a pool notice. */
export class Outage {
  readonly #logger: Logger;
  #since: number | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  trouble(error: unknown): void {
    if (this.#since !== undefined) return;
    this.#since = Date.now();
    const reason = error instanceof Error ? error.message || error.name : String(error);
    const what = isAway(error) ? "Lost the database" : "The database refused a statement";
    this.#logger.error(`${what} (${reason}); trying again until it answers. Running jobs go on.`, { error });
  }

  well(): void {
    if (this.#since === undefined) return;
    const seconds = ((Date.now() - this.#since) / 1000).toFixed(1);
    this.#since = undefined;
    this.#logger.info(`The database answers again after ${seconds} s.`);
  }
}
