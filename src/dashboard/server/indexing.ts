import type { QueueUtils } from "../../index.ts";
import type { AnswerCache } from "./answer-cache.ts";

/** How often to see whether the table has grown large. */
const intervalMs = 10 * 60_000;

/** Has the jobs that run and those that are dead indexed once there are too many others to search, as long as the dashboard is in use. */
export class Indexing {
  readonly #utils: QueueUtils;
  readonly #cache: AnswerCache;
  readonly #isAllowed: boolean;
  readonly #stop = new AbortController();
  #busy: Promise<unknown> = Promise.resolve();

  constructor(utils: QueueUtils, cache: AnswerCache, isAllowed: boolean) {
    this.#utils = utils;
    this.#cache = cache;
    this.#isAllowed = isAllowed;
  }

  keepUp(): void {
    if (this.#isAllowed && !this.#stop.signal.aborted) this.#cache.peek("indexes", intervalMs, () => this.#index());
  }

  /** A build that is under way is given up; the next dashboard begins it again. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#busy;
  }

  /** A role that may not build indexes looks through all jobs. */
  #index(): Promise<unknown> {
    this.#busy = this.#utils.indexStates({ signal: this.#stop.signal }).catch(() => false);
    return this.#busy;
  }
}
