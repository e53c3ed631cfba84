import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import type { Database } from "../db/database.ts";
import type { Listener } from "../db/listener.ts";
import { moveReturnedJob } from "../db/statements/move-returned-job.ts";
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
import { HandOver } from "./hand-over.ts";
import { deafPollMs, hearJobs } from "./hear-jobs.ts";
import type { MakeHelpers } from "./helpers.ts";
import type { PoolInterceptors } from "./interceptors.ts";
import { interruptJobs } from "./interrupt-jobs.ts";
import { type LocalQueueSettings, LocalQueueView } from "./local-queue.ts";
import { LockKeeper } from "./lock-keeper.ts";
import { Outage } from "./outage.ts";
import type { Outcome } from "./outcome.ts";
import { persist } from "./persist.ts";
import { retryDelayMs, SettleLane, type Write, writeCompleted, writeFailed } from "./settler.ts";
import { Slot } from "./slot.ts";
import { StopSwitch } from "./stop-switch.ts";
import { Strays } from "./strays.ts";
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
  /** A worker was released on its own; throws unless somebody deals with it. */
  readonly onWorkerExit: (pool: WorkerPool, worker: Worker, replaceWithNewWorker: () => void) => void;
}

export interface PoolOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly settings: PoolSettings;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly makeHelpers: MakeHelpers;
  readonly hooks: PoolHooks;
  readonly interceptors?: PoolInterceptors | undefined;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  /** False if the forbidden flags can change from one job to the next, so that none may be claimed ahead. */
  readonly mayHoldAhead: boolean;
  /** The connection to listen on; undefined to rely on polling alone. */
  readonly listenOn: (() => Promise<PoolClient>) | undefined;
  readonly workerId: string | undefined;
  /** Run until there is nothing more to do, then stop. */
  readonly isOnce: boolean;
  /** True if claims are statements of their own, so that they may commit without waiting for the disk. */
  readonly ownsTransactions: boolean;
  /** The schema was changed in a breaking way under us. */
  readonly onBreakingMigration: () => void;
  /** Signs of life, for those who would recover our jobs if we died. */
  readonly lifeline?: Lifeline | undefined;
}

/** Nothing is claimed before `register` has succeeded, and `deregister` comes when nothing is held any more. */
interface Lifeline {
  register(taskNames: readonly string[]): Promise<void>;
  deregister(): Promise<void>;
}

const interruptedMessage = "Job recovered after worker interruption";
const onceMessage = "'Run once' mode processed all available jobs and is now exiting";
const overtakenMessage = "forcefulShutdown was initiated whilst gracefulShutdown was still executing.";
/** How long a forceful shutdown tries to write what it decided. */
const forcefulMs = 5_000;
/** How long it then waits for what is under way. */
const overtimeMs = 250;

/** Takes jobs out and runs them: one claimer, a buffer, slots, and two lanes that write how jobs ended. */
export class Pool implements WorkerPool {
  readonly promise: Promise<void>;
  readonly #options: PoolOptions;
  readonly #slots: Slot[];
  readonly #finished = deferred();
  readonly #stopClaiming = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #strays: Strays;
  readonly #beingReturned = new Set<readonly Job[]>();
  readonly #outage: Outage;
  readonly #claimer: Claimer;
  readonly #dispatcher: Dispatcher;
  readonly #lanes: readonly [SettleLane<"succeeded">, SettleLane<"failed">];
  readonly #keeper: LockKeeper;
  readonly #handOver: HandOver | undefined;
  readonly #localQueue: LocalQueueView | undefined;
  #id: string;
  #stopSwitch = new StopSwitch();
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
    this.#id = `${isOnce ? "otpool" : "pool"}-${randomBytes(9).toString("hex")}`;
    this.promise = this.#finished.promise;
    this.promise.catch(() => undefined); // whoever cares awaits it; a pool must not end the process by itself
    this.#strays = new Strays({ database, poolId: () => this.#id, held: () => this.#held() });
    this.#outage = new Outage(logger, (error) => this.#strays.suspect(error));
    this.#lanes = [
      new SettleLane(this.#surely(writeCompleted(database)), settings.completeJobBatchDelay, (error) =>
        this.#die(error, "completeJob"),
      ),
      new SettleLane(this.#surely(writeFailed(database)), settings.failJobBatchDelay, (error) =>
        this.#die(error, "failJob"),
      ),
    ];
    this.#slots = Array.from({ length: settings.concurrentJobs }, () => this.#makeSlot());
    this.#localQueue = settings.localQueue.size > 0 ? new LocalQueueView(settings.localQueue, emit) : undefined;
    this.#dispatcher = this.#makeDispatcher();
    this.#claimer = this.#makeClaimer();
    // On a client that is not ours alone, the fewer statements the better.
    this.#handOver = options.ownsTransactions ? new HandOver(database, settings.useNodeTime) : undefined;
    this.#keeper = new LockKeeper({
      ...settings,
      database,
      emit,
      workerPool: this,
      running: () => this.#dispatcher.running(),
    });
  }

  get id(): string {
    return this.#id;
  }
  /** No task is running any more. */
  get isIdle(): boolean {
    return this.#slots.every((slot) => slot.getActiveJob() === null);
  }
  get _workers(): readonly Slot[] {
    return this.#slots;
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
        () => this.gracefulShutdown(onceMessage),
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

  /**
   * Goes on under another id, because others have taken us for dead and given our jobs back: what runs is told to stop, and
   * whatever it still reports changes nothing.
   */
  takeIdentity(id: string, message: string): void {
    const { emit } = this.#options;
    const abandoned = new Set(this.#dispatcher.running());
    const { jobs, queueIds } = this.#dispatcher.buffer.drain();
    const former = this.#stopSwitch;
    this.#id = id;
    this.#stopSwitch = new StopSwitch();
    for (const worker of this._workers) {
      const job = worker.getActiveJob();
      if (!job || !abandoned.has(job)) continue;
      this.#dispatcher.abandon(job);
      emit("job:lost", { worker, job, error: new Error(message) });
    }
    this.#giveBack({ jobs, queueIds });
    former.abort(message);
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
    if (!this.#graceful) {
      this.#graceful = this.#shutDownOrElse(message);
      this.#graceful.catch(() => undefined); // an event tells of it, and `promise`
    }
    return this.#graceful;
  }

  forcefulShutdown(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    if (this.#isFinished && !this.#forceful) return Promise.resolve({ forceFailedJobs: [] });
    this.#forceful ??= this.#stopNowWhateverHappens(message);
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

  #makeSlot(): Slot {
    const slot = new Slot(this, this.#options.emit, this.#options.workerId);
    void slot.promise.then(() => this.#onSlotGone(slot));
    return slot;
  }

  /** Somebody released one of our slots while the pool goes on: a plugin may replace it, else the pool stops too. */
  #onSlotGone(slot: Slot): void {
    if (!this._active) return;
    const { emit, hooks, tasks, logger } = this.#options;
    this.#dispatcher.retire(slot);
    try {
      hooks.onWorkerExit(this, slot, () => {
        const successor = this.#makeSlot();
        this.#slots[this.#slots.indexOf(slot)] = successor;
        emit("worker:create", { worker: successor, tasks });
        this.#dispatcher.employ(successor);
      });
    } catch (error) {
      logger.error(`${toError(error).message}; the pool is shutting down.`, { error });
      void this.gracefulShutdown(toError(error).message);
    }
  }

  #makeDispatcher(): Dispatcher {
    const { tasks, emit, makeHelpers, settings, interceptors } = this.#options;
    return new Dispatcher({
      slots: this._workers,
      tasks,
      emit,
      makeHelpers,
      aroundRun: interceptors?.aroundRun,
      completing: this.#lanes[0],
      failing: this.#lanes[1],
      localQueue: this.#localQueue && settings.localQueue,
      isAlone: !this.#options.ownsTransactions,
      mayHoldAhead: this.#options.mayHoldAhead,
      stopSwitch: () => this.#stopSwitch,
      onRoom: () => {
        // While nobody tells us of new jobs, a slot that has become free is a reason to look.
        if (this.#listener?.isListening) this.#claimer.wake();
        else this.#claimer.nudge();
      },
      onSettled: (outcome, hasReleasedQueue) => {
        if (outcome.kind === "failed") this.#claimer.expect(retryDelayMs(outcome.job));
        if (hasReleasedQueue) {
          this.#claimer.nudge();
          this.#handOver?.released(outcome.job.job_queue_id!);
        } else {
          this.#claimer.wake();
        }
      },
      onDrained: () => this.#localQueue?.drained(),
      onStall: () => {
        this.#localQueue?.expire();
        this.#giveBack(this.#dispatcher.buffer.drain());
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
      strays: this.#strays,
      onClaiming: () => {
        this.#localQueue?.polling();
        forFreeSlots((worker) => emit("worker:getJob:start", { worker }));
      },
      onClaimed: (jobs, wanted, bytes) => {
        this.#handOver?.claimed(jobs);
        this.#localQueue?.claimed(jobs, wanted, () => this.#claimer.wake());
        if (jobs[0] && jobs[0].locked_by !== this.#id) {
          // Claimed under an id that was taken for dead meanwhile.
          this.#giveBack({ jobs: [...jobs], queueIds: queuesOf(jobs) });
          return;
        }
        if (this.#stopClaiming.signal.aborted) {
          for (const job of jobs) this.#dispatcher.buffer.add(job);
          this.#giveBack(this.#dispatcher.buffer.drain());
          return;
        }
        this.#options.interceptors?.onClaimed?.(jobs);
        this.#dispatcher.accept(jobs, bytes);
        if (this.#dispatcher.buffer.size > 0) this.#localQueue?.holding();
        if (jobs.length < wanted) forFreeSlots((worker) => emit("worker:getJob:empty", { worker }));
      },
      onError: (error) => forFreeSlots((worker) => emit("worker:getJob:error", { worker, error })),
    });
  }

  #learnTasks(): Promise<TaskIds> {
    const { tasks } = this.#options;
    const names = Object.keys(tasks);
    if (names.length === 0) return Promise.reject(new Error("No runnable tasks!"));
    this.#taskIds ??= this.#register(names).catch((error) => {
      this.#taskIds = undefined;
      throw error;
    });
    return this.#taskIds;
  }

  async #register(names: readonly string[]): Promise<TaskIds> {
    await this.#options.lifeline?.register(names);
    return learnTaskIds(this.#options.database, names);
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
    const { listenOn } = this.#options;
    if (!listenOn) return;
    this.#listener = hearJobs({
      ...this.#options,
      connect: listenOn,
      workerPool: this,
      outage: this.#outage,
      onListening: () => this.#claimer.nudge(),
      onDeaf: () => {
        this.#isDeaf = true;
        this.#claimer.nudge();
      },
    });
    this.#listener.start();
  }

  /** Every job that the database has locked for us, as far as we know. */
  #held(): Job[] {
    const running = this._workers.map((slot) => slot.getActiveJob()).filter((job) => job !== null);
    const ended = [...this.#lanes[0].jobs(), ...this.#lanes[1].jobs()];
    return [...running, ...this.#dispatcher.buffer.jobs(), ...ended, ...[...this.#beingReturned].flat()];
  }

  /** Returns jobs that were claimed and not started; `#returning` resolves when all such are written. */
  #giveBack({ jobs, queueIds }: { jobs: Job[]; queueIds: number[] }): void {
    if (jobs.length === 0) return;
    this.#beingReturned.add(jobs);
    const written = this.#write(jobs, queueIds, null, null).then(
      () => {
        this.#localQueue?.returned(jobs);
        this.#claimer.wake();
      },
      (error) => this.#die(error, "returnJob"),
    );
    this.#returning = Promise.all([this.#returning, written]).then(() => void this.#beingReturned.delete(jobs));
  }

  #surely<Kind extends Outcome["kind"]>(write: Write<Kind>): Write<Kind> {
    return async (endings) => {
      // A queue must not be released before its jobs that we held are back in line, or later ones would overtake them.
      await this.#returning;
      return persist(
        async (mayBeDone) => {
          const lost = await write(endings);
          // A job that is not ours any more after a try that may have gone through was most likely settled by that.
          return mayBeDone ? null : lost;
        },
        this.#outage,
        this.#giveUp.signal,
      );
    };
  }

  async #write(
    jobs: readonly Job[],
    queueIds: number[],
    delayMs: number | null,
    reason: string | null,
  ): Promise<Set<string>> {
    await this.#returning; // as above
    const params = { poolId: jobs[0]!.locked_by!, jobIds: jobs.map(({ id }) => id), queueIds, delayMs, reason };
    const [row] = await persist(
      // If an earlier try went through unheard, we may hold the same jobs again by now: whoever looks for strays knows.
      async (mayBeDone) => (mayBeDone && this._active ? [] : this.#options.database.run(returnJobs, params)),
      this.#outage,
      this.#giveUp.signal,
    );
    return new Set(row?.lost ?? []);
  }

  async #shutDown(message: string): Promise<void> {
    const { emit, settings } = this.#options;
    const abortTimer = setTimeout(() => this.#stopSwitch.abort(message), settings.gracefulShutdownAbortTimeout);
    abortTimer.unref();
    emit("pool:gracefulShutdown", { pool: this, workerPool: this, message });
    try {
      await this.#windDown();
    } finally {
      clearTimeout(abortTimer);
    }
    if (this.#forceful) throw new ShutdownError(overtakenMessage);
    emit("pool:gracefulShutdown:complete", { pool: this, workerPool: this });
    await this.#finish();
  }

  async #shutDownOrElse(message: string): Promise<void> {
    const { emit, hooks } = this.#options;
    try {
      await hooks.aroundGracefulShutdown(this, message, () => this.#shutDown(message));
    } catch (error) {
      emit("pool:gracefulShutdown:error", { pool: this, workerPool: this, error });
      await this.forcefulShutdown(toError(error).message);
      throw error;
    }
  }

  async #stopNowWhateverHappens(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    const { emit, hooks } = this.#options;
    try {
      return await hooks.aroundForcefulShutdown(this, message, () => this.#stopNow(message));
    } catch (error) {
      emit("pool:forcefulShutdown:error", { pool: this, workerPool: this, error });
      return this.#stopNow(message);
    }
  }

  /** The flow cut off at the left and drained to the right. */
  async #windDown(): Promise<void> {
    this.#stopClaiming.abort();
    await this.#claiming.catch(() => undefined);
    this.#localQueue?.release();
    this.#giveBack(this.#dispatcher.close());
    await Promise.all([this.#returning, this.#waitForSlots(), this.#listener?.stop()]);
    await Promise.all([this.#lanes[0].idle(), this.#lanes[1].idle(), this.#keeper.stop()]);
    await this.#handOver?.stop();
    await this.#returnStrays();
    if (this.#firstFlags) await Promise.all(this._workers.map((worker) => this.#options.hooks.onWorkerStop(worker)));
    await this.#options.lifeline?.deregister();
  }

  /** The last thing to do: from here on nobody would look for what may be locked under our name. */
  async #returnStrays(): Promise<void> {
    for (let ms = this.#strays.lookAt - Date.now(); ms <= 1_000; ms = this.#strays.lookAt - Date.now()) {
      await sleep(ms, this.#giveUp.signal);
      await persist(() => this.#strays.look(), this.#outage, this.#giveUp.signal);
    }
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
    const { emit, settings, database, interceptors } = this.#options;
    const ours = new Set(this.#dispatcher.running());
    const running = this._workers.flatMap((worker) => {
      const job = worker.getActiveJob();
      return job && ours.has(job) ? [{ worker, job }] : [];
    });
    await interruptJobs(running, {
      decide: interceptors?.onInterrupt,
      isRunning: (job) => this.#dispatcher.running().includes(job),
      abort: () => this.#stopSwitch.abort("The worker is shutting down and the job's time is over."),
      abandon: (job) => this.#dispatcher.abandon(job),
      giveBack: (jobs, queueIds, atLeastMs) => {
        const delayMs = Math.max(atLeastMs, settings.interruptedJobRetryDelay);
        return this.#write(jobs, queueIds, delayMs, interruptedMessage);
      },
      move: async ({ id, revision }, { runAt, attempts = null }) => {
        const params = { id, revision, runAt, attempts };
        await persist(() => database.run(moveReturnedJob, params), this.#outage, this.#giveUp.signal);
      },
      fail: ({ job }, queueId) => this.#failNow(job, new ShutdownError(interruptedMessage), queueId),
      onInterrupted: ({ worker, job }) => emit("job:interrupted", { worker, job, reason: interruptedMessage }),
    });
    for (const slot of this._workers) void slot.release(true);
  }

  async #stopNow(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    const { emit, interceptors } = this.#options;
    emit("pool:forcefulShutdown", { pool: this, workerPool: this, message });
    this.#stopClaiming.abort();
    this.#stopSwitch.abort(message);
    this.#localQueue?.release();
    const jobs = this.#dispatcher.running();
    const error = new ShutdownError(message);
    this.#giveBack(this.#dispatcher.close());
    for (const job of jobs) {
      void this.#failNow(job, error, this.#dispatcher.abandon(job)).then((isLost) => {
        if (!isLost) interceptors?.onForceFailed?.(job, error);
      });
    }
    for (const slot of this._workers) void slot.release(true);
    try {
      await this.#writeWhatIsLeft();
      emit("pool:forcefulShutdown:complete", { pool: this, workerPool: this });
    } catch (failure) {
      emit("pool:forcefulShutdown:error", { pool: this, workerPool: this, error: failure });
    }
    await this.#options.lifeline?.deregister();
    const names = jobs.map(({ id, task_identifier }) => `${id} (${task_identifier})`).join(", ");
    await this.#finish(
      jobs.length > 0
        ? new ShutdownError(`${message}; jobs that were still running and are now failed: ${names}`)
        : undefined,
    );
    return { forceFailedJobs: jobs };
  }

  /** Fails a job from outside; resolves to whether it was no longer ours, or could not be written. */
  #failNow(job: Job, error: Error, releaseQueue: number | null): Promise<boolean> {
    return new Promise((resolve) => {
      this.#lanes[1].add({
        outcome: { kind: "failed", job, error },
        poolId: job.locked_by!,
        releaseQueue,
        onWritten: (isLost) => {
          if (releaseQueue !== null) this.#handOver?.released(releaseQueue);
          resolve(isLost);
        },
        onGivenUp: () => resolve(true),
      });
    });
  }

  /** Tries for a while; a database that is away must not keep a process that is to end. */
  async #writeWhatIsLeft(): Promise<void> {
    const giveUpTimer = setTimeout(() => this.#giveUp.abort(), forcefulMs);
    const cancel = new AbortController();
    const written = async (): Promise<boolean> => {
      await this.#claiming.catch(() => undefined); // what it still brings is returned
      await Promise.all([this.#lanes[0].idle(), this.#lanes[1].idle(), this.#keeper.stop(), this.#listener?.stop()]);
      await this.#returning;
      await this.#handOver?.stop();
      return !this.#giveUp.signal.aborted || this.#fatal !== undefined;
    };
    const isWritten = await Promise.race([written(), sleep(forcefulMs + overtimeMs, cancel.signal).then(() => false)]);
    clearTimeout(giveUpTimer);
    cancel.abort();
    if (!isWritten) {
      throw new ShutdownError(`Could not write how jobs ended within ${forcefulMs / 1000} s; their locks remain.`);
    }
  }

  /** A write that cannot succeed: this pool can no longer keep its promises, so it stops and says why. */
  #die(error: unknown, action: string): void {
    if (this.#fatal || this.#giveUp.signal.aborted) return;
    this.#fatal = toError(error);
    this.#options.emit("pool:fatalError", { workerPool: this, error, action });
    this.#options.logger.error(`The worker cannot go on and stops (${action}): ${this.#fatal.message}`, { error });
    this.#giveUp.abort();
    void this.gracefulShutdown(`Fatal error: ${this.#fatal.message}`);
  }

  async #finish(error = this.#fatal): Promise<void> {
    if (this.#isFinished) return; // a forceful shutdown overtook a graceful one
    this.#isFinished = true;
    const { emit, interceptors } = this.#options;
    emit("pool:release", { pool: this, workerPool: this });
    if (interceptors?.beforeEnd) await interceptors.beforeEnd(error);
    if (error) this.#finished.reject(error);
    else this.#finished.resolve();
  }
}

function queuesOf(jobs: readonly Job[]): number[] {
  return [...new Set(jobs.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null))];
}
