import { randomBytes } from "node:crypto";
import { errorTitle } from "../error-text.ts";
import { toError } from "../errors.ts";
import type { Job } from "../job.ts";
import { JobLostError } from "../job-errors.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import { Flow } from "./flow.ts";
import { Identity } from "./identity.ts";
import type { PoolOptions } from "./pool-options.ts";
import { Slot } from "./run/slot.ts";
import { Shutdown, type StopReason } from "./stop/shutdown.ts";

const onceMessage = "'Run once' mode processed all available jobs and is now exiting";

/** Takes jobs out and runs them: one claimer, a buffer, slots, and two lanes that write how jobs ended. */
export class Pool implements WorkerPool {
  readonly promise: Promise<void>;
  readonly #options: PoolOptions;
  readonly #identity: Identity;
  readonly #slots: Slot[];
  readonly #flow: Flow;
  readonly #shutdown: Shutdown;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#identity = new Identity(
      `${options.isOnce ? "otpool" : "pool"}-${randomBytes(9).toString("hex")}`,
      (stopped, reason) => this.#flow.dispatcher.abortAll(stopped, reason),
    );
    this.#slots = Array.from({ length: options.settings.concurrentJobs }, () => this.#makeSlot());
    this.#flow = new Flow({
      ...options,
      workerPool: this,
      identity: this.#identity,
      slots: this.#slots,
      addSlot: () => this.#addSlot(),
      dropSlot: (slot) => this.#dropSlot(slot),
    });
    this.#shutdown = new Shutdown({ ...options, workerPool: this, flow: this.#flow });
    this.promise = this.#shutdown.ended;
  }

  get id(): string {
    return this.#identity.id;
  }
  /** When the claimer's loop last turned, on the monotonic clock. */
  get turnedAt(): number {
    return this.#flow.intake.turnedAt;
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
    return this.#identity.stopSwitch.signal;
  }
  get abortPromise(): Promise<never> {
    return this.#identity.stopSwitch.promise;
  }
  get _active(): boolean {
    return this.#flow.intake.isOpen;
  }
  get _shuttingDown(): boolean {
    return this.#shutdown.hasBegun;
  }
  get _forcefulShuttingDown(): boolean {
    return this.#shutdown.isForceful;
  }

  start(): void {
    const { emit, tasks, isOnce } = this.#options;
    const { intake, localQueue, keeper, writeBack, cancels } = this.#flow;
    emit("pool:create", { workerPool: this });
    for (const worker of this._workers) emit("worker:create", { worker, tasks });
    localQueue?.start();
    if (isOnce) {
      void keeper
        .resetNow()
        .then(() => intake.runUntilEmpty())
        .then(
          () => this.gracefulShutdown(onceMessage),
          (error) => writeBack.die(error, "getJob"),
        );
      return;
    }
    keeper.start();
    cancels?.start();
    intake.start();
  }

  nudge(count: number): void {
    if (count <= 0) return;
    this.#flow.localQueue?.pulse(count);
    this.#flow.intake.nudge();
  }

  /** Looks at the names in the task list again, which may have changed. */
  refreshTasks(): void {
    this.#flow.intake.refreshTasks();
  }

  /**
   * Goes on under another id, because others have declared us dead and recovered our jobs: running jobs are aborted, and
   * whatever it still reports changes nothing.
   */
  takeIdentity(id: string, message: string): void {
    const { dispatcher, intake, writeBack } = this.#flow;
    const abandoned = new Set(dispatcher.running());
    const unstarted = dispatcher.takeUnstarted();
    const former = this.#identity.renew(id);
    for (const worker of this._workers) {
      const job = worker.getActiveJob();
      if (!job || !abandoned.has(job)) continue;
      // Its row is locked by its own transaction, so no sweep can have taken it: what becomes of that decides.
      if (worker.run?.completion?.transaction !== undefined) continue;
      dispatcher.abandon(job);
      this.#options.emit("job:lost", { worker, job, error: new Error(message) });
    }
    writeBack.returnUnstarted(unstarted);
    former.abort(new JobLostError(message));
    intake.nudge();
  }

  /** A heartbeat that was overdue has come through, or there is a job to adopt. */
  resume(): void {
    this.#flow.dispatcher.goOn();
    this.#flow.intake.nudge();
  }

  async release(): Promise<void> {
    this.#options.logger.error(
      "DEPRECATED: You are calling `workerPool.release()`; please use `workerPool.gracefulShutdown()` instead.",
    );
    await this.gracefulShutdown();
  }

  gracefulShutdown(
    message = "Worker pool is shutting down gracefully",
    reason: StopReason = "graceful",
  ): Promise<void> {
    return this.#shutdown.graceful(message, reason);
  }

  forcefulShutdown(message: string, reason: StopReason = "forceful"): Promise<{ forceFailedJobs: readonly Job[] }> {
    return this.#shutdown.forceful(message, reason);
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
    const slot = new Slot(this, this.#options.emit, (stopping) => this.#beforeStop(stopping), this.#options.workerId);
    void slot.promise.then(() => this.#onSlotGone(slot));
    return slot;
  }

  /** One more slot, in the place of one that is stuck. */
  #addSlot(): Slot {
    const { emit, tasks } = this.#options;
    const slot = this.#makeSlot();
    this.#slots.push(slot);
    emit("worker:create", { worker: slot, tasks });
    this.#flow.dispatcher.employ(slot);
    return slot;
  }

  #dropSlot(slot: Slot): void {
    const index = this.#slots.indexOf(slot);
    if (index >= 0) this.#slots.splice(index, 1);
    void slot.release();
  }

  /** Plugins hear of it first. A hook that fails keeps no worker from stopping. */
  async #beforeStop(slot: Slot): Promise<void> {
    const { emit, hooks, logger } = this.#options;
    const { dispatcher, intake } = this.#flow;
    dispatcher.retire(slot);
    if (!intake.hasStartedWorkers) return;
    try {
      await hooks.onWorkerStop(slot);
    } catch (error) {
      logger.error(`A 'stopWorker' hook of a plugin failed: ${errorTitle(error)}`, { error });
      if (!this._active) emit("pool:gracefulShutdown:workerError", { pool: this, workerPool: this, error, job: null });
    }
  }

  /** One of our slots was released while the pool continues: a plugin may replace it, else the pool stops too. */
  #onSlotGone(slot: Slot): void {
    if (!this._active || !this.#slots.includes(slot)) return;
    const { emit, hooks, tasks, logger } = this.#options;
    const { dispatcher } = this.#flow;
    try {
      hooks.onWorkerExit(this, slot, () => {
        const successor = this.#makeSlot();
        this.#slots[this.#slots.indexOf(slot)] = successor;
        emit("worker:create", { worker: successor, tasks });
        dispatcher.employ(successor);
      });
    } catch (error) {
      logger.error(`${toError(error).message}; the pool is shutting down.`, { error });
      void this.gracefulShutdown(toError(error).message);
    }
  }
}
