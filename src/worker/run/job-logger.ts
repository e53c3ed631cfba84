import type { Logger as GraphileLogger } from "@graphile/logger";
import type { Job } from "../../job.ts";
import { Logger, type LogScope } from "../../logger.ts";
import type { Worker } from "../../worker.ts";

const noLog = (): (() => void) => () => undefined;

/**
 * The logger of one job. What is behind it is made when it is first used, since most jobs never log; and it is an object of
 * its own rather than a getter among the helpers, since a getter would cost each job more than all else that it is handed.
 */
export class JobLogger extends Logger {
  readonly #parent: Logger;
  readonly #worker: Worker;
  readonly #job: Job;
  #made: Logger | undefined;

  constructor(parent: Logger, worker: Worker, job: Job) {
    super(noLog);
    this.#parent = parent;
    this.#worker = worker;
    this.#job = job;
  }

  override scope<More extends object>(more: Partial<More>): GraphileLogger<LogScope & More> {
    return this.#logger.scope(more);
  }

  override error(message: string, meta?: Parameters<Logger["error"]>[1]): void {
    this.#logger.error(message, meta);
  }

  override warn(message: string, meta?: Parameters<Logger["warn"]>[1]): void {
    this.#logger.warn(message, meta);
  }

  override info(message: string, meta?: Parameters<Logger["info"]>[1]): void {
    this.#logger.info(message, meta);
  }

  override debug(message: string, meta?: Parameters<Logger["debug"]>[1]): void {
    this.#logger.debug(message, meta);
  }

  get #logger(): Logger {
    this.#made ??= this.#parent.scope<LogScope>({
      label: "job",
      workerId: this.#worker.workerId,
      taskIdentifier: this.#job.task_identifier,
      jobId: this.#job.id,
    });
    return this.#made;
  }
}
