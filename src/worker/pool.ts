import { randomBytes } from "node:crypto";
import { toError } from "../errors.ts";
import type { Job } from "../job.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import { Flow } from "./flow.ts";
import { Identity } from "./identity.ts";
import type { PoolOptions } from "./pool-options.ts";
import { Shutdown } from "./shutdown.ts";
import { Slot } from "./slot.ts";

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
    this.#identity = new Identity(`${options.isOnce ? "otpool" : "pool"}-${randomBytes(9).toString("hex")}`);
    this.#slots = Array.from({ length: options.settings.concurrentJobs }, () => this.#makeSlot());
    this.#flow = new Flow({ ...options, workerPool: this, identity: this.#identity, slots: this.#slots });
    this.#shutdown = new Shutdown({ ...options, workerPool: this, flow: this.#flow });
    this.promise = this.#shutdown.ended;
  }

  get id(): string {
    return this.#identity.id;
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
    const { intake, localQueue, keeper, writeBack } = this.#flow;
    emit("pool:create", { workerPool: this });
    for (const worker of this._workers) emit("worker:create", { worker, tasks });
    localQueue?.start();
    if (isOnce) {
      void intake.runUntilEmpty().then(
        () => this.gracefulShutdown(onceMessage),
        (error) => writeBack.die(error, "getJob"),
      );
      return;
    }
    keeper.start();
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
   * Goes on under another id, because others have taken us for dead and given our jobs back: what runs is told to stop, and
   * whatever it still reports changes nothing.
   */
  takeIdentity(id: string, message: string): void {
    const { dispatcher, intake, writeBack } = this.#flow;
    const abandoned = new Set(dispatcher.running());
    const unstarted = dispatcher.buffer.drain();
    const former = this.#identity.renew(id);
    for (const worker of this._workers) {
      const job = worker.getActiveJob();
      if (!job || !abandoned.has(job)) continue;
      dispatcher.abandon(job);
      this.#options.emit("job:lost", { worker, job, error: new Error(message) });
    }
    writeBack.giveBack(unstarted);
    former.abort(message);
    intake.nudge();
  }

  async release(): Promise<void> {
    this.#options.logger.error(
      "DEPRECATED: You are calling `workerPool.release()`; please use `workerPool.gracefulShutdown()` instead.",
    );
    await this.gracefulShutdown();
  }

  gracefulShutdown(message = "Worker pool is shutting down gracefully"): Promise<void> {
    return this.#shutdown.graceful(message);
  }

  forcefulShutdown(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    return this.#shutdown.forceful(message);
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
    const { dispatcher } = this.#flow;
    dispatcher.retire(slot);
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
