import { hostname } from "node:os";
import type { ClientConfig } from "pg";
import { MAX_MIGRATION } from "../db/adopt.ts";
import type { Database } from "../db/database.ts";
import { newestMigration } from "../db/plan-migration.ts";
import { deregisterWorker, registerWorker } from "../db/statements/register-worker.ts";
import type { Emit } from "../events.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { formatSpan } from "../util/time-span.ts";
import { version } from "../version.ts";
import type { HeartNews } from "./heart.ts";
import { LoopBoard } from "./loop-board.ts";
import type { RecoverySettings, WorkerMetadata } from "./recovery-settings.ts";
import { type RunningHeart, startHeart } from "./start-heart.ts";
import type { SweepHooks } from "./sweep.ts";
import { Sweeper } from "./sweeper.ts";

export interface RecoveryOptions {
  readonly database: Database;
  /** How the heart reaches the database: past a pooler, if possible. */
  readonly config: ClientConfig;
  readonly settings: RecoverySettings;
  readonly concurrency: number;
  readonly logger: Logger;
  /** The id that the worker's locks carry now. */
  readonly workerId: () => string;
  /** Others have taken the worker for dead: it is to go on under this id. */
  readonly onRenewed: (workerId: string, message: string) => void;
  /** The schema has become, or is about to become, too new for this worker. */
  readonly onBreakingMigration: () => void;
  readonly hooks: SweepHooks;
}

const deregisterMs = 3_000;

/** One worker's part in crash recovery: it gives signs of life, and looks after the jobs of those who give none. */
export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #board: LoopBoard;
  readonly #stopping = new AbortController();
  #registered: Promise<void> | undefined;
  #heart: RunningHeart | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#board = LoopBoard.forSlots(options.concurrency);
  }

  /** Lets the heart know which jobs run, should one of them block the event loop. */
  follow(emit: Emit): Emit {
    return this.#board.follow(emit);
  }

  /** Resolves when others know of this worker. May be called again, with other tasks. */
  async register(tasks: readonly string[]): Promise<void> {
    const metadata = this.#describe(tasks);
    if (this.#registered) {
      await this.#registered;
      this.#heart?.describe(metadata);
      return;
    }
    this.#registered = this.#start(metadata);
    try {
      await this.#registered;
    } catch (error) {
      this.#registered = undefined;
      throw error;
    }
  }

  /** To be called when nothing is held any more; never rejects and never takes long. */
  async deregister(): Promise<void> {
    const { database, workerId, logger } = this.#options;
    this.#stopping.abort();
    if (!this.#registered) return;
    const leave = async (): Promise<void> => {
      await Promise.all([this.#heart?.stop(), this.#sweeping]);
      await database.run(deregisterWorker, { id: workerId() });
    };
    const tooLate = new AbortController();
    await Promise.race([
      leave().catch((error: unknown) => {
        // Its row will be found silent, and then it holds nothing.
        logger.debug(`Could not deregister: ${String(error)}`);
      }),
      sleep(deregisterMs, tooLate.signal),
    ]);
    tooLate.abort();
  }

  async #start(metadata: WorkerMetadata): Promise<void> {
    const { database, settings, logger, workerId, hooks, config } = this.#options;
    await database.run(registerWorker, { id: workerId(), metadata });
    if (this.#stopping.signal.aborted) return;
    this.#heart = startHeart({
      workerId: workerId(),
      schema: database.schema,
      metadata,
      settings,
      config,
      board: this.#board,
      logger,
      tell: (news) => this.#hear(news),
    });
    const sweeper = new Sweeper({ database, settings, logger, hooks, sweeperId: workerId });
    this.#sweeping = sweeper.run(this.#stopping.signal);
  }

  #hear(news: HeartNews): void {
    const { logger, onRenewed, onBreakingMigration } = this.#options;
    switch (news.kind) {
      case "renewed": {
        const message =
          `This worker was taken for dead (as ${news.from}) and its jobs were given to others; it goes on as ${news.to}. ` +
          "What its old jobs still do is not recorded.";
        logger.warn(message);
        onRenewed(news.to, message);
        return;
      }
      case "blocked":
        logger.warn(
          `The event loop was blocked for ${formatSpan(news.ms)}, ${
            news.jobs.length > 0 ? `most likely by job ${news.jobs[0]}` : "though no job was running"
          }: no other job could go on meanwhile. Compute in a worker thread, or in smaller steps.`,
        );
        return;
      case "schema":
        if (news.breaking > MAX_MIGRATION || news.announced > newestMigration()) onBreakingMigration();
        return;
      case "pooled":
        logger.info("The connection goes through a pooler, so the death of a worker is known by its silence only.");
        return;
      case "trouble":
        logger.warn(`Could not give a sign of life; trying again: ${news.message}`);
    }
  }

  #describe(tasks: readonly string[]): WorkerMetadata {
    return {
      pid: process.pid,
      hostname: hostname(),
      version,
      concurrency: this.#options.concurrency,
      migration: newestMigration(),
      tasks: [...tasks],
    };
  }
}
