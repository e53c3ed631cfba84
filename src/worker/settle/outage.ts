import { type OutageLog, troubleOf } from "../../db/outage-log.ts";
import { isRepeatable } from "../../db/sqlstate.ts";
import type { Logger } from "../../logger.ts";
import { NoTasksError } from "../claim/known-tasks.ts";

const idle =
  "This worker has no tasks, so it runs nothing: put a file into its task folder, or a function into 'taskList'.";

/** What a pool does about statements that fail: its parts report here, and nothing is logged twice. */
export class Outage {
  readonly #log: OutageLog;
  readonly #logger: Logger;
  readonly #onSuspect: (error: unknown) => void;
  readonly #mayBeIdle: boolean;
  #isIdle: boolean;
  /** What had no tasks; that another part does well says nothing about it. */
  #idlePart: object | undefined;

  constructor(log: OutageLog, logger: Logger, onSuspect: (error: unknown) => void, mayBeIdle = false) {
    this.#log = log;
    this.#logger = logger;
    this.#onSuspect = onSuspect;
    this.#mayBeIdle = mayBeIdle;
    this.#isIdle = mayBeIdle;
  }

  trouble(part: object, error: unknown): void {
    if (error instanceof NoTasksError) {
      if (!this.#isIdle) this.#logger.warn(idle);
      this.#isIdle = true;
      this.#idlePart = part;
      return;
    }
    if (isRepeatable(error)) {
      // Two claims in each other's way, under an isolation level that lets one of them fail: the next try is as good as any.
      this.#logger.debug("The database asked for a statement to be repeated.", { error });
      return;
    }
    this.#log.trouble(part, troubleOf(error), error);
  }

  /** Something that changes jobs has failed, and may have been done all the same. */
  suspect(error: unknown): void {
    this.#onSuspect(error);
  }

  well(part: object): void {
    if (part === this.#idlePart) this.#isIdle = this.#mayBeIdle;
    this.#log.well(part);
  }

  leave(part: object): void {
    this.#log.leave(part);
  }
}
