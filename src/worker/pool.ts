import { randomBytes } from "node:crypto";
import type { Notification, PoolClient } from "pg";
import type { Database } from "../db/database.ts";
import { Listener } from "../db/listener.ts";
import { returnJobs } from "../db/statements/return-jobs.ts";
import { ShutdownError, toError } from "../errors.ts";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import { deferred } from "../util/deferred.ts";
import { sleep } from "../util/sleep.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import { Claimer } from "./claimer.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { MakeHelpers } from "./helpers.ts";
import { type LocalQueueSettings, LocalQueueView } from "./local-queue.ts";
import { LockKeeper } from "./lock-keeper.ts";
import { Outage } from "./outage.ts";
import { failed } from "./outcome.ts";
import { persist } from "./persist.ts";
import { retryDelayMs, SettleLane, writeCompleted, writeFailed } from "./settler.ts";
import { Slot } from "./slot.ts";
import { StopSwitch } from "./stop-switch.ts";
import { learnTaskIds, type TaskIds } from "./task-ids.ts";

/** How a pool behaves; the names are those of the options. */
export interface PoolSettings {
  readonly concurrentJobs: number;
  readonly pollInterval: number;
  readonly useNodeTime: boolean;
  readonly gracefulShutdownAbortTimeout: number;
  readonly shutdownGracePeriod: number | undefined;
  readonly interruptedJobRetryDelay: number;
  readonly minResetLockedInterval: number;
  readonly maxResetLockedInterval: number;
  readonly completeJobBatchDelay: number;
  readonly failJobBatchDelay: number;
  readonly localQueue: LocalQueueSettings;
  readonly acceptedFlags: readonly string[] | undefined;
}

/** Plugins may stand around a shutdown, and be told when workers start and stop. */
export interface PoolHooks {
  readonly aroundGracefulShutdown: (pool: WorkerPool, message: string, shutDown: () => Promise<void>) => Promise<void>;
  readonly aroundForcefulShutdown: (
    pool: WorkerPool,
    message: string,
    shutDown: () => Promise<{ forceFailedJobs: readonly Job[] }>,
  ) => Promise<{ forceFailedJobs: readonly Job[] }>;
  /** May change the flags that the first claim skips. */
  readonly onWorkerStart: (worker: Worker, flagsToSkip: string[] | null) => Promise<string[] | null>;
  readonly onWorkerStop: (worker: Worker) => Promise<void>;
}

export interface PoolOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly settings: PoolSettings;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly makeHelpers: MakeHelpers;
  readonly hooks: PoolHooks;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  /** The connection to listen on; undefined to rely on polling alone. */
  readonly listenOn: (() => Promise<PoolClient>) | undefined;
  readonly workerId: string | undefined;
  /** Run until there is nothing more to do, then stop. */
  readonly isOnce: boolean;
  /** True if claims are statements of their own, so that they may commit without waiting for the disk. */
  readonly ownsTransactions: boolean;
  /** The schema was changed in a breaking way under us. */
  readonly onBreakingMigration: () => void;
}

const interruptedMessage = "Job recovered after worker interruption";
/** How often to look when nobody tells us of new jobs. */
const deafPollMs = 500;
/** How long a forceful shutdown tries to write what it decided. */
const forcefulMs = 5_000;

/** Takes jobs out and runs them: one claimer, a buffer, slots, and two lanes that write how jobs ended. */
export class Pool implements WorkerPool {
  readonly id: string;
  readonly promise: Promise<void>;
  readonly _workers: readonly Slot[];
  readonly #options: PoolOptions;
  readonly #finished = deferred();
  readonly #stopClaiming = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #stopSwitch = new StopSwitch();
  readonly #outage: Outage;
  readonly #claimer: Claimer;
  readonly #dispatcher: Dispatcher;
  readonly #lanes: readonly [SettleLane<"succeeded">, SettleLane<"failed">];
  readonly #keeper: LockKeeper;
  readonly #localQueue: LocalQueueView | undefined;
  #listener: Listener | undefined;
  #taskIds: Promise<TaskIds> | undefined;
  #claiming: Promise<void> = Promise.resolve();
  #returning: Promise<void> = Promise.resolve();
  #graceful: Promise<void> | undefined;
  #forceful: Promise<{ forceFailedJobs: readonly Job[] }> | undefined;
  #firstFlags: Promise<string[] | null> | undefined;
  #fatal: Error | undefined;
  #isDeaf = false;
  #isFinished = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { database, settings, emit, logger, isOnce } = options;
    this.id = `${isOnce ? "otpool" : "pool"}-${randomBytes(9).toString("hex")}`;
    this.promise = this.#finished.promise;
    this.promise.catch(() => undefined); // whoever cares awaits it; a pool must not end the process by itself
    this.#outage = new Outage(logger);
    this.#lanes = [
      new SettleLane(
        (endings) => persist(() => writeCompleted(database)(endings), this.#outage, this.#giveUp.signal),
        settings.completeJobBatchDelay,
        (error) => this.#die(error, "completeJob"),
      ),
      new SettleLane(
        (endings) => persist(() => writeFailed(database)(endings), this.#outage, this.#giveUp.signal),
        settings.failJobBatchDelay,
        (error) => this.#die(error, "failJob"),
      ),
    ];
    this._workers = Array.from({ length: settings.concurrentJobs }, () => new Slot(this, emit, options.workerId));
    this.#localQueue = settings.localQueue.size > 0 ? new LocalQueueView(settings.localQueue, emit) : undefined;
    this.#dispatcher = this.#makeDispatcher();
    this.#claimer = this.#makeClaimer();
    this.#keeper = new LockKeeper({
      ...settings,
      database,
      emit,
      workerPool: this,
      running: () => this.#dispatcher.running(),
    });
  }

  get worker(): Worker | null {
    return this._workers.length === 1 ? this._workers[0]! : null;
  }
  get abortSignal(): AbortSignal {
    return this.#stopSwitch.signal;
  }
  get abortPromise(): Promise<never> {
    return this.#stopSwitch.promise;
  }
  get _active(): boolean {
    return !this.#stopClaiming.signal.aborted;
  }
  get _shuttingDown(): boolean {
    return this.#graceful !== undefined || this.#forceful !== undefined;
  }
  get _forcefulShuttingDown(): boolean {
    return this.#forceful !== undefined;
  }

  start(): void {
    const { emit, tasks, isOnce } = this.#options;
    emit("pool:create", { workerPool: this });
    for (const worker of this._workers) emit("worker:create", { worker, tasks });
    this.#localQueue?.start();
    if (isOnce) {
      this.#claiming = this.#claimer.runUntilEmpty(this.#stopClaiming.signal, () => this.#dispatcher.isQuiet);
      void this.#claiming.then(
        () => this.#windDown(),
        (error) => this.#die(error, "getJob"),
      );
      return;
    }
    this.#keeper.start();
    this.#listen();
    this.#claiming = this.#claimer.run(this.#stopClaiming.signal);
  }

  nudge(count: number): void {
    if (count <= 0) return;
    this.#localQueue?.pulse(count);
    this.#claimer.nudge();
  }

  /** Looks at the names in the task list again, which may have changed. */
  refreshTasks(): void {
    this.#taskIds = undefined;
    this.#claimer.nudge();
  }

  async release(): Promise<void> {
    this.#options.logger.error(
      "DEPRECATED: You are calling `workerPool.release()`; please use `workerPool.gracefulShutdown()` instead.",
    );
    await this.gracefulShutdown();
  }

  gracefulShutdown(message = "Worker pool is shutting down gracefully"): Promise<void> {
    if (this.#forceful) return this.#forceful.then(() => undefined);
    this.#graceful ??= this.#options.hooks.aroundGracefulShutdown(this, message, () => this.#shutDown(message));
    return this.#graceful;
  }

  forcefulShutdown(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    this.#forceful ??= this.#options.hooks.aroundForcefulShutdown(this, message, () => this.#stopNow(message));
    return this.#forceful;
  }

  // biome-ignore lint/suspicious/noThenProperty: Graphile Worker's pools can be awaited, and so can ours
  then<A = void, B = never>(
    onFulfilled?: ((value: void) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.promise.then(onFulfilled, onRejected);
  }
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<void | T> {
    return this.promise.catch(onRejected);
  }
  finally(onFinally?: (() => void) | null): Promise<void> {
    return this.promise.finally(onFinally);
  }

  #makeDispatcher(): Dispatcher {
    const { tasks, emit, makeHelpers, settings } = this.#options;
    return new Dispatcher({
      slots: this._workers,
      tasks,
      emit,
      makeHelpers,
      completing: this.#lanes[0],
      failing: this.#lanes[1],
      localQueue: this.#localQueue && settings.localQueue,
      stopSwitch: () => this.#stopSwitch,
      onRoom: () => {
        // While nobody tells us of new jobs, a slot that has become free is a reason to look.
        if (this.#listener?.isListening) this.#claimer.wake();
        else this.#claimer.nudge();
      },
      onSettled: (outcome, hasReleasedQueue) => {
        if (outcome.kind === "failed") this.#claimer.expect(retryDelayMs(outcome.job));
        if (hasReleasedQueue) this.#claimer.nudge();
        else this.#claimer.wake();
      },
      onStall: () => {
        this.#localQueue?.expire();
        this.#returning = this.#giveBack(this.#dispatcher.buffer.drain());
      },
    });
  }

  #makeClaimer(): Claimer {
    const { database, emit, settings } = this.#options;
    const forFreeSlots = (say: (worker: Worker) => void): void => {
      if (emit.heard("worker:getJob:start") || emit.heard("worker:getJob:empty") || emit.heard("worker:getJob:error")) {
        for (const slot of this.#dispatcher.freeSlots.toReversed()) say(slot);
      }
    };
    return new Claimer({
      database,
      poolId: () => this.id,
      tasks: () => this.#learnTasks(),
      room: () => (this.#localQueue?.isResting ? null : this.#dispatcher.room()),
      forbiddenFlags: () => this.#flagsToSkip(),
      acceptedFlags: settings.acceptedFlags ?? null,
      useNodeTime: settings.useNodeTime,
      relaxed: this.#options.ownsTransactions,
      pollInterval: () => (this.#isDeaf ? Math.min(deafPollMs, settings.pollInterval) : settings.pollInterval),
      outage: this.#outage,
      onClaiming: () => forFreeSlots((worker) => emit("worker:getJob:start", { worker })),
      onClaimed: (jobs, wanted, bytes) => {
        this.#localQueue?.filled(jobs, wanted, () => this.#claimer.nudge());
        if (this.#stopClaiming.signal.aborted) {
          for (const job of jobs) this.#dispatcher.buffer.add(job);
          this.#returning = this.#giveBack(this.#dispatcher.buffer.drain());
          return;
        }
        this.#dispatcher.accept(jobs, bytes);
        if (jobs.length < wanted) forFreeSlots((worker) => emit("worker:getJob:empty", { worker }));
      },
      onError: (error) => forFreeSlots((worker) => emit("worker:getJob:error", { worker, error })),
    });
  }

  #learnTasks(): Promise<TaskIds> {
    const { database, tasks } = this.#options;
    const names = Object.keys(tasks);
    if (names.length === 0) return Promise.reject(new Error("No runnable tasks!"));
    this.#taskIds ??= learnTaskIds(database, names).catch((error) => {
      this.#taskIds = undefined;
      throw error;
    });
    return this.#taskIds;
  }

  async #flagsToSkip(): Promise<readonly string[] | null> {
    const flags = await this.#options.forbiddenFlags();
    if (this.#firstFlags) return flags;
    this.#firstFlags = this.#startWorkers(flags ? [...flags] : null);
    return this.#firstFlags;
  }

  async #startWorkers(flags: string[] | null): Promise<string[] | null> {
    let flagsToSkip = flags;
    for (const worker of this._workers) flagsToSkip = await this.#options.hooks.onWorkerStart(worker, flagsToSkip);
    return flagsToSkip;
  }

  #listen(): void {
    const { listenOn, database, emit, logger } = this.#options;
    if (!listenOn) return;
    this.#listener = new Listener({
      connect: listenOn,
      notify: (channel, payload) =>
        database.withPgClient((client) => client.query("select pg_notify($1, $2)", [channel, payload])),
      onConnecting: (attempts) => emit("pool:listen:connecting", { workerPool: this, attempts }),
      onConnected: (client) => emit("pool:listen:success", { workerPool: this, client }),
      onNotification: (message, client) => {
        emit("pool:listen:notification", { workerPool: this, message, client });
        this.#hear(message);
      },
      onError: (error) => {
        emit("pool:listen:error", { workerPool: this, error });
        this.#outage.trouble(error);
      },
      onReleased: (client) => emit("pool:listen:release", { workerPool: this, client }),
      onDeaf: () => {
        this.#isDeaf = true;
        this.#claimer.nudge();
        logger.warn(
          "Notifications do not arrive on this connection, as is usual behind a pooler in transaction mode. Jobs are now " +
            `looked for every ${deafPollMs} ms; set 'listenConnectionString' to a direct connection to start them at once.`,
        );
      },
    });
    this.#listener.start();
  }

  #hear({ channel, payload }: Notification): void {
    let message: { count?: unknown; breaking?: unknown } | undefined;
    try {
      message = JSON.parse(payload ?? "");
    } catch {
      // Anybody may notify; what cannot be read counts as one job.
    }
    if (channel === "worker:migrate") {
      if (message?.breaking === true) this.#options.onBreakingMigration();
      return;
    }
    this.nudge(typeof message?.count === "number" ? message.count : 1);
  }

  /** Returns jobs that were claimed and not started. */
  async #giveBack({ jobs, queueIds }: { jobs: Job[]; queueIds: number[] }): Promise<void> {
    if (jobs.length === 0) return;
    try {
      await this.#write(jobs, queueIds, null, null);
      this.#localQueue?.returned(jobs);
      this.#claimer.wake();
    } catch (error) {
      this.#die(error, "returnJob");
    }
  }

  async #write(
    jobs: readonly Job[],
    queueIds: number[],
    delayMs: number | null,
    reason: string | null,
  ): Promise<Set<string>> {
    const params = { poolId: jobs[0]!.locked_by!, jobIds: jobs.map(({ id }) => id), queueIds, delayMs, reason };
    const [row] = await persist(
      () => this.#options.database.run(returnJobs, params),
      this.#outage,
      this.#giveUp.signal,
    );
    return new Set(row?.lost ?? []);
  }

  async #shutDown(message: string): Promise<void> {
    const { emit, settings } = this.#options;
    const abortTimer = setTimeout(
      () => this.#stopSwitch.abort(new Error(message)),
      settings.gracefulShutdownAbortTimeout,
    );
    abortTimer.unref();
    emit("pool:gracefulShutdown", { pool: this, workerPool: this, message });
    try {
      await this.#windDown();
      emit("pool:gracefulShutdown:complete", { pool: this, workerPool: this });
    } catch (error) {
      emit("pool:gracefulShutdown:error", { pool: this, workerPool: this, error });
      await this.forcefulShutdown(toError(error).message);
    } finally {
      clearTimeout(abortTimer);
    }
  }

  /** The flow cut off at the left and drained to the right. */
  async #windDown(): Promise<void> {
    this.#stopClaiming.abort();
    await this.#claiming.catch(() => undefined);
    const [, returned] = [this.#localQueue?.release(), this.#giveBack(this.#dispatcher.close())];
    await Promise.all([returned, this.#returning, this.#waitForSlots()]);
    await Promise.all([this.#lanes[0].idle(), this.#lanes[1].idle(), this.#keeper.stop(), this.#listener?.stop()]);
    if (this.#firstFlags) await Promise.all(this._workers.map((worker) => this.#options.hooks.onWorkerStop(worker)));
    this.#finish();
  }

  async #waitForSlots(): Promise<void> {
    const { shutdownGracePeriod } = this.#options.settings;
    const allEnded = Promise.all(this._workers.map((slot) => slot.release()));
    if (shutdownGracePeriod === undefined) {
      await allEnded;
      return;
    }
    const isEnded = allEnded.then(() => true);
    const timer = new AbortController();
    const inTime = await Promise.race([isEnded, sleep(shutdownGracePeriod, timer.signal).then(() => false)]);
    timer.abort();
    if (!inTime) await this.#interrupt();
  }

  /** Gives running jobs back: the process must go, and it is not their fault. */
  async #interrupt(): Promise<void> {
    const { emit, settings } = this.#options;
    this.#stopSwitch.abort(new ShutdownError("The worker is shutting down and the job's time is over."));
    const slots = this._workers.filter((slot) => slot.getActiveJob() !== null);
    const jobs = slots.map((slot) => slot.getActiveJob()!);
    if (jobs.length > 0) {
      const queueIds = jobs.map((job) => this.#dispatcher.abandon(job)).filter((id) => id !== null);
      const lost = await this.#write(jobs, queueIds, settings.interruptedJobRetryDelay, interruptedMessage);
      for (const slot of slots) {
        const job = slot.getActiveJob();
        if (job && !lost.has(job.id)) emit("job:interrupted", { worker: slot, job, reason: interruptedMessage });
      }
    }
    for (const slot of this._workers) void slot.release(true);
  }

  async #stopNow(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    const { emit } = this.#options;
    emit("pool:forcefulShutdown", { pool: this, workerPool: this, message });
    this.#stopClaiming.abort();
    this.#stopSwitch.abort(new ShutdownError(message));
    const giveUpTimer = setTimeout(() => this.#giveUp.abort(), forcefulMs);
    const jobs = this.#dispatcher.running();
    try {
      this.#localQueue?.release();
      const returned = this.#giveBack(this.#dispatcher.close());
      for (const job of jobs) {
        this.#lanes[1].add({
          outcome: failed(job, new ShutdownError(message)) as never,
          poolId: job.locked_by!,
          releaseQueue: this.#dispatcher.abandon(job),
          onWritten: () => undefined,
        });
      }
      for (const slot of this._workers) void slot.release(true);
      await Promise.all([
        returned,
        this.#lanes[0].idle(),
        this.#lanes[1].idle(),
        this.#keeper.stop(),
        this.#listener?.stop(),
      ]);
      emit("pool:forcefulShutdown:complete", { pool: this, workerPool: this });
    } catch (error) {
      emit("pool:forcefulShutdown:error", { pool: this, workerPool: this, error });
    } finally {
      clearTimeout(giveUpTimer);
    }
    const names = jobs.map(({ id, task_identifier }) => `${id} (${task_identifier})`).join(", ");
    this.#finish(
      jobs.length > 0
        ? new ShutdownError(`${message}; jobs that were still running and are now failed: ${names}`)
        : undefined,
    );
    return { forceFailedJobs: jobs };
  }

  /** A write that cannot succeed: this pool can no longer keep its promises, so it stops and says why. */
  #die(error: unknown, action: string): void {
    if (this.#fatal || this.#giveUp.signal.aborted) return;
    this.#fatal = toError(error);
    this.#options.emit("pool:fatalError", { workerPool: this, error, action });
    this.#options.logger.error(`The worker cannot go on and stops (${action}): ${this.#fatal.message}`, { error });
    this.#giveUp.abort();
    void this.gracefulShutdown(`Fatal error: ${this.#fatal.message}`).catch(() => undefined);
  }

  #finish(error = this.#fatal): void {
    if (this.#isFinished) return; // a forceful shutdown overtook a graceful one
    this.#isFinished = true;
    const { emit } = this.#options;
    emit("pool:release", { pool: this, workerPool: this });
    if (error) this.#finished.reject(error);
    else this.#finished.resolve();
  }
}
