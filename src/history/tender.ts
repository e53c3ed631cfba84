import type { Database } from "../db/database.ts";
import { insufficientPrivilege, isTransient } from "../db/sqlstate.ts";
import { tendHistory } from "../db/statements/history.ts";
import { errorTitle } from "../error-text.ts";
import { codeOf } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Service } from "../util/service.ts";
import { clearInterval, setInterval } from "../util/timers.ts";

/** Partitions are made for three days, so a worker that is up in one of them is enough. */
const intervalMs = 60 * 60_000;
/** Each step makes the missing partitions or drops one. */
const maxSteps = 100;

export interface HistoryTenderOptions {
  readonly database: Pick<Database, "run">;
  readonly logger: Logger;
  /** For how many days anything is kept. */
  readonly days: () => readonly number[];
}

/** Makes the partitions of history ahead and drops those that have expired. Of several workers at once, one does it. */
export class HistoryTender implements Service {
  readonly #options: HistoryTenderOptions;
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> = Promise.resolve();
  #isStopped = false;
  #hasWarned = false;

  constructor(options: HistoryTenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#busy = this.#tend();
    this.#timer = setInterval(() => {
      this.#busy = this.#tend();
    }, intervalMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#busy;
  }

  async #tend(): Promise<void> {
    const { database, days, logger } = this.#options;
    try {
      const kept = days();
      if (kept.length === 0) return;
      for (let step = 0; step < maxSteps && !this.#isStopped; step++) {
        const [row] = await database.run(tendHistory, { days: kept });
        if (!row?.may_be_more) return;
      }
    } catch (error) {
      // Settles go on: what has no partition goes to the default one.
      if (this.#hasWarned || isTransient(error)) return;
      this.#hasWarned = true;
      logger.warn(describe(error), { error });
    }
  }
}

function describe(error: unknown): string {
  if (codeOf(error) !== insufficientPrivilege) {
    return `The partitions of the job history could not be made or dropped; it will be tried again: ${errorTitle(error)}`;
  }
  return (
    "This role may not make and drop the partitions of the job history. If no other worker does, the history goes to its default partitions " +
    `and is deleted row by row: grant execute on the function '_hathi_tend_history' (docs/least-privilege.md). ${errorTitle(error)}`
  );
}
