import type { Database } from "../db/database.ts";
import { type JobLink, linkJobs } from "../db/statements/links.ts";
import { sleep } from "../util/sleep.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";

/** Tasks that add job after job cost a statement this often. */
const restMs = 200;
/** Links of one statement; and as many are kept while the database is unreachable. */
const most = 10_000;
/** An unreachable database must not keep a process from ending. */
const stopMs = 1_000;

export interface LinkRecorderOptions {
  readonly database: Pick<Database, "run">;
  /** The connection is lent to tasks too: nothing may be written on it between their statements. */
  readonly isAlone: boolean;
}

/** Writes which jobs added which, a moment later and many at once. A process that is killed in that moment leaves a few jobs whose parent is unknown. */
export class LinkRecorder {
  readonly #options: LinkRecorderOptions;
  #links: JobLink[] = [];
  #timer: NodeJS.Timeout | undefined;
  #busy: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: LinkRecorderOptions) {
    this.#options = options;
  }

  record(links: readonly JobLink[]): void {
    for (const link of links) this.#links.push(link);
    this.#plan();
  }

  /** All jobs have ended: writes what is left, and tries no longer. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const cancel = new AbortController();
    const written = (this.#busy ?? Promise.resolve()).then(() => this.#write());
    await Promise.race([written, sleep(stopMs, cancel.signal)]);
    cancel.abort();
  }

  #plan(): void {
    if (this.#timer || this.#busy || this.#isClosed || this.#options.isAlone) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#busy = this.#write().finally(() => {
        this.#busy = undefined;
        if (this.#links.length > 0) this.#plan();
      });
    }, restMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    while (this.#links.length > 0) {
      const batch = this.#links.slice(0, most);
      try {
        await this.#options.database.run(linkJobs, { links: batch });
      } catch {
        this.#links = this.#links.slice(-most); // the claimer reports an unreachable database
        return;
      }
      this.#links = this.#links.slice(batch.length);
    }
  }
}
