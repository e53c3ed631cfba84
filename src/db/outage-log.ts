import { errorLine } from "../error-text.ts";
import type { Logger } from "../logger.ts";
import { monotonicMs } from "../util/timers.ts";
import { isFromServer, isUnreachable } from "./sqlstate.ts";

/** What is known of an error that was noticed, maybe in another thread. */
export interface Trouble {
  readonly reason: string;
  readonly isUnreachable: boolean;
  /** False if it is the database's; true if a function that the user gave has thrown. */
  readonly isForeign: boolean;
}

export function troubleOf(error: unknown): Trouble {
  const isAbsent = isUnreachable(error);
  return { reason: errorLine(error), isUnreachable: isAbsent, isForeign: !isAbsent && !isFromServer(error) };
}

/** Logs one line when the database becomes unreachable and one when it answers again, however many parts notice. */
export class OutageLog {
  readonly #logger: Logger;
  readonly #troubled = new Set<object>();
  #since = 0;
  #isForeign = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `part` is what noticed; the outage lasts until each of them is well. */
  trouble(part: object, { reason, isUnreachable, isForeign }: Trouble, error?: unknown): void {
    const isFirst = this.#troubled.size === 0;
    this.#troubled.add(part);
    if (!isFirst) return;
    this.#since = monotonicMs();
    this.#isForeign = isForeign;
    if (isForeign) {
      this.#logger.error(`Cannot ask for jobs (${reason}); trying again. Running jobs go on.`, { error });
      return;
    }
    const what = isUnreachable ? "Lost the database" : "The database refused a statement";
    this.#logger.error(`${what} (${reason}); trying again until it answers. Running jobs go on.`, { error });
  }

  well(part: object): void {
    if (!this.#troubled.delete(part) || this.#troubled.size > 0) return;
    const seconds = ((monotonicMs() - this.#since) / 1000).toFixed(1);
    const what = this.#isForeign ? "Asking for jobs works again" : "The database answers again";
    this.#logger.info(`${what} after ${seconds} s.`);
  }

  /** The part has given up, so it will not be well any more. */
  leave(part: object): void {
    this.#troubled.delete(part);
  }
}
