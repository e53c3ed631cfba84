import { hostname } from "node:os";
import type { ClientConfig } from "pg";
import type { RecoverySettings } from "../config/recovery-options.ts";
import { MAX_MIGRATION } from "../db/adopt.ts";
import type { Database } from "../db/database.ts";
import type { OutageLog } from "../db/outage-log.ts";
import { newestMigration } from "../db/plan-migration.ts";
import { deregisterWorker, registerWorker } from "../db/statements/heartbeat.ts";
import type { AdoptParams } from "../db/statements/sweep.ts";
import type { EventHandlers } from "../emit.ts";
import { errorTitle } from "../error-text.ts";
import type { KeepRules } from "../kept-history.ts";
import type { Logger } from "../logger.ts";
import { clip } from "../util/clip.ts";
import { sleep } from "../util/sleep.ts";
import { formatSpan } from "../util/time-span.ts";
import { monotonicMs } from "../util/timers.ts";
import { version } from "../version.ts";
import { type HeartNews, workMs } from "./heart.ts";
import { LoopBoard } from "./loop-board.ts";
import { type RunningHeart, startHeart } from "./start-heart.ts";
import { type AdoptedJob, Suspects } from "./suspects.ts";
import type { SweepHooks } from "./sweep-options.ts";
import { Sweeper } from "./sweeper.ts";
import type { WorkerMetadata } from "./worker-metadata.ts";

export interface RecoveryOptions {
  readonly database: Database;
  /** How the heart reaches the database: past a pooler, if possible. */
  readonly config: ClientConfig;
  readonly settings: RecoverySettings;
  readonly concurrency: number;
  /** The worker runs no tasks of the user's: it hands jobs on to another system. */
  readonly isForwarder: boolean;
  /** The version of the user's program, if it was given. */
  readonly appVersion: string | undefined;
  readonly logger: Logger;
  readonly outages: OutageLog;
  /** The id that the worker's locks carry now. */
  readonly workerId: () => string;
  /** Others have taken the worker for dead: it is to go on under this id. */
  readonly onRenewed: (workerId: string, message: string) => void;
  /** It may work again after an overdue heartbeat, or there is a job to adopt. */
  readonly onResumed: () => void;
  /** The schema has become, or is about to become, too new for this worker. */
  readonly onBreakingMigration: () => void;
  readonly hooks: SweepHooks;
  readonly keepRules: KeepRules;
}

const deregisterMs = 3_000;

/** One worker's part in crash recovery: it sends heartbeats, and looks after the jobs of workers that send none. */
export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #board: LoopBoard;
  readonly #stopping = new AbortController();
  #registered: Promise<void> | undefined;
  #heart: RunningHeart | undefined;
  #sweeper: Sweeper | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #metadata: WorkerMetadata | undefined;
  readonly #suspects: Suspects;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#board = LoopBoard.forSlots(options.concurrency);
    this.#suspects = new Suspects(options.database, options.onResumed);
  }

  /** What its parts want to know of the jobs that run. */
  get handlers(): readonly EventHandlers[] {
    return [this.#board.handlers(), this.#suspects.handlers];
  }

  get mayWork(): boolean {
    return this.#board.mayWork;
  }

  get hasSuspects(): boolean {
    return this.#suspects.areWaiting;
  }

  adopt(params: AdoptParams, nameById: ReadonlyMap<number, string>): Promise<AdoptedJob | null> {
    return this.#suspects.adopt(params, nameById);
  }

  doubt(): void {
    this.#heart?.doubt();
  }

  hearFleet(payload: string | undefined): void {
    let news: { p?: unknown; by?: unknown; schema?: unknown; quiet?: unknown; sweptMs?: unknown } | null;
    try {
      news = JSON.parse(payload ?? "");
    } catch {
      return; // anyone may notify
    }
    const { workerId, database } = this.#options;
    if (typeof news?.p === "string" && news.p !== workerId()) this.#sweeper?.noticeOthers();
    if (news?.schema !== database.schema || news.by === workerId()) return;
    this.#sweeper?.hear(news.quiet === true, typeof news.sweptMs === "number" ? news.sweptMs : Infinity);
  }

  announceStop(): void {
    if (this.#metadata) this.#redescribe({ ...this.#metadata, stopping: true });
  }

  /** Resolves when others know of this worker. May be called again, with other tasks. */
  async register(tasks: readonly string[]): Promise<void> {
    const metadata = this.#describe(tasks);
    if (this.#registered) {
      await this.#registered;
      this.#redescribe(metadata);
      return;
    }
    this.#metadata = metadata;
    this.#registered = this.#start(metadata);
    try {
      await this.#registered;
    } catch (error) {
      this.#registered = undefined;
      throw error;
    }
  }

  /**
   * To be called when nothing runs any more; never rejects and never takes long. A worker that leaves locks only falls silent:
   * its row is what others know it by when they recover its jobs.
   */
  async deregister(leavesLocks: boolean): Promise<void> {
    const { database, workerId, logger } = this.#options;
    this.#stopping.abort();
    if (!this.#registered) return;
    const leave = async (): Promise<void> => {
      await Promise.all([this.#heart?.stop(), this.#sweeping]);
      if (!leavesLocks) await database.run(deregisterWorker, { id: workerId() });
    };
    const tooLate = new AbortController();
    await Promise.race([
      leave().catch((error: unknown) => {
        // Its row will be found silent, and then it holds nothing.
        logger.debug(`Could not deregister: ${errorTitle(error)}`);
      }),
      sleep(deregisterMs, tooLate.signal),
    ]);
    tooLate.abort();
  }

  async #start(metadata: WorkerMetadata): Promise<void> {
    const { database, settings, logger, outages, workerId, hooks, keepRules, config } = this.#options;
    const sentAt = monotonicMs();
    await database.run(registerWorker, { id: workerId(), metadata });
    this.#board.allow(sentAt, workMs(settings));
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
    this.#sweeper = new Sweeper({
      database,
      settings,
      logger,
      outages,
      hooks,
      keepRules,
      sweeperId: workerId,
      witnessed: () => (this.#board.mayWork ? this.#board.witnessed : undefined),
      onParked: (inMs) => this.#suspects.expect(inMs),
    });
    this.#sweeping = this.#sweeper.run(this.#stopping.signal);
  }

  #hear(news: HeartNews): void {
    const { logger, outages, onRenewed, onResumed, onBreakingMigration } = this.#options;
    switch (news.kind) {
      case "renewed": {
        const message =
          `This worker was taken for dead (as ${news.from}) and its jobs were given to others; it goes on as ${news.to}. ` +
          "What its old jobs still do is not recorded.";
        logger.warn(message);
        onRenewed(news.to, message);
        this.#heart?.goOn(news.to);
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
        logger.info(
          "The connection goes through a pooler, so a worker's death is noticed only by its missing heartbeats.",
        );
        return;
      case "overdue":
        logger.warn(
          "This worker starts no jobs: its heartbeat is overdue, so other workers may soon take over its jobs. It goes on when a " +
            "heartbeat comes through.",
        );
        return;
      case "resumed":
        onResumed();
        return;
      case "trouble":
        outages.trouble(this, { ...news, reason: `heartbeat: ${news.reason}` });
        return;
      case "well":
        outages.well(this);
    }
  }

  #redescribe(metadata: WorkerMetadata): void {
    this.#metadata = metadata;
    this.#heart?.describe(metadata);
  }

  #describe(tasks: readonly string[]): WorkerMetadata {
    const appVersion = this.#options.appVersion ?? process.env.npm_package_version;
    return {
      pid: process.pid,
      hostname: hostname(),
      version,
      ...(appVersion && { appVersion: clip(appVersion, 100) }),
      concurrency: this.#options.concurrency,
      migration: newestMigration(),
      tasks: [...tasks],
      ...(this.#options.isForwarder && { forwards: true }),
    };
  }
}
