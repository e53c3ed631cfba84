import type { Database } from "../db/database.ts";
import { insufficientPrivilege, isTransient } from "../db/sqlstate.ts";
import { tendHistory } from "../db/statements/history.ts";
import { errorTitle } from "../error-text.ts";
import { codeOf } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { deferred } from "../util/deferred.ts";
import type { Service } from "../util/service.ts";
import { sleep } from "../util/sleep.ts";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "../util/timers.ts";

/** Partitions are made for three days, so a worker that is up in one of them is enough. */
const intervalMs = 60 * 60_000;
/** Each step makes missing partitions or drops one. */
const maxSteps = 100;
/** Outcomes wait for the partitions of today, but not for longer than this. */
const maxOpeningMs = 5_000;
/** How soon to look again while another worker makes them. */
const busyRestMs = 20;

export interface HistoryMaintenanceOptions {
  readonly database: Pick<Database, "run">;
  readonly logger: Logger;
  /** For how many days anything is kept. */
  readonly days: () => readonly number[];
}

/** Makes the partitions of history ahead and drops those that have expired. Of several workers at once, one does it. */
export class HistoryMaintenance implements Service {
  readonly #options: HistoryMaintenanceOptions;
  readonly #stop = new AbortController();
  readonly #opened = deferred();
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> = Promise.resolve();
  #hasWarned = false;

  constructor(options: HistoryMaintenanceOptions) {
    this.#options = options;
  }

  /**
   * Resolves when today has its partitions, or after a moment without; undefined once that is so. A day whose first rows have gone to the default partition
   * gets none of its own any more.
   */
  opening(): Promise<void> | undefined {
    return this.#isOpen ? undefined : this.#opened.promise;
  }

  start(): void {
    const limit = setTimeout(() => this.#open(), maxOpeningMs);
    limit.unref();
    this.#busy = this.#maintain().finally(() => {
      clearTimeout(limit);
      this.#open();
    });
    this.#timer = setInterval(() => {
      this.#busy = this.#maintain();
    }, intervalMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    await this.#busy;
  }

  #open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  async #maintain(): Promise<void> {
    const { database, days, logger } = this.#options;
    try {
      const kept = days();
      if (kept.length === 0) return;
      for (let step = 0; step < maxSteps && !this.#stop.signal.aborted; step++) {
        const [row] = await database.run(tendHistory, { days: kept });
        const mayBeMore = row!.may_be_more;
        if (mayBeMore === null && !this.#isOpen) {
          await sleep(busyRestMs, this.#stop.signal);
          continue;
        }
        this.#open();
        if (!mayBeMore) return;
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
