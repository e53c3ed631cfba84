import { ShutdownError, toError } from "../errors.ts";
import type { Job } from "../job.ts";
import { deferred } from "../util/deferred.ts";
import type { WorkerPool } from "../worker.ts";
import { cutOff, writeWhatIsLeft } from "./cut-off.ts";
import type { Flow } from "./flow.ts";
import type { PoolOptions } from "./pool-options.ts";
import { windDown } from "./wind-down.ts";

const overtakenMessage = "forcefulShutdown was initiated whilst gracefulShutdown was still executing.";

export interface ShutdownOptions extends PoolOptions {
  readonly workerPool: WorkerPool;
  readonly flow: Flow;
}

/** How a pool ends: once gracefully, once forcefully at most, and whichever comes through first is the end. */
export class Shutdown {
  /** Settles when the pool has ended; rejects if that was not as it should be. */
  readonly ended: Promise<void>;
  readonly #options: ShutdownOptions;
  readonly #ended = deferred();
  #graceful: Promise<void> | undefined;
  #forceful: Promise<{ forceFailedJobs: readonly Job[] }> | undefined;
  #isFinished = false;

  constructor(options: ShutdownOptions) {
    this.#options = options;
    this.ended = this.#ended.promise;
    this.ended.catch(() => undefined); // whoever cares awaits it; a pool must not end the process by itself
  }

  get hasBegun(): boolean {
    return this.#graceful !== undefined || this.#forceful !== undefined;
  }

  get isForceful(): boolean {
    return this.#forceful !== undefined;
  }

  /** Lets running jobs end, and turns forceful if something goes wrong on the way. */
  graceful(message: string): Promise<void> {
    if (this.#forceful) return this.#forceful.then(() => undefined);
    if (!this.#graceful) {
      this.#graceful = this.#stopOrElse(message);
      this.#graceful.catch(() => undefined); // an event tells of it, and `ended`
    }
    return this.#graceful;
  }

  /** Fails running jobs; plugins that stand around it cannot prevent it. */
  forceful(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    if (this.#isFinished && !this.#forceful) return Promise.resolve({ forceFailedJobs: [] });
    this.#forceful ??= this.#stopNowWhateverHappens(message);
    return this.#forceful;
  }

  async #stopOrElse(message: string): Promise<void> {
    const { emit, hooks, workerPool } = this.#options;
    try {
      await hooks.aroundGracefulShutdown(workerPool, message, () => this.#stop(message));
    } catch (error) {
      emit("pool:gracefulShutdown:error", { pool: workerPool, workerPool, error });
      await this.forceful(toError(error).message);
      throw error;
    }
  }

  async #stop(message: string): Promise<void> {
    const { emit, settings, workerPool, flow } = this.#options;
    const abort = (): void => flow.identity.stopSwitch.abort(message);
    const abortTimer = setTimeout(abort, settings.gracefulShutdownAbortTimeout);
    abortTimer.unref();
    emit("pool:gracefulShutdown", { pool: workerPool, workerPool, message });
    try {
      await windDown(flow, this.#options);
    } finally {
      clearTimeout(abortTimer);
    }
    if (this.#forceful) throw new ShutdownError(overtakenMessage);
    emit("pool:gracefulShutdown:complete", { pool: workerPool, workerPool });
    await this.#finish();
  }

  async #stopNowWhateverHappens(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    const { emit, hooks, workerPool } = this.#options;
    try {
      return await hooks.aroundForcefulShutdown(workerPool, message, () => this.#stopNow(message));
    } catch (error) {
      emit("pool:forcefulShutdown:error", { pool: workerPool, workerPool, error });
      return this.#stopNow(message);
    }
  }

  async #stopNow(message: string): Promise<{ forceFailedJobs: readonly Job[] }> {
    const { emit, interceptors, lifeline, workerPool, flow } = this.#options;
    emit("pool:forcefulShutdown", { pool: workerPool, workerPool, message });
    const error = new ShutdownError(message);
    const jobs = cutOff(flow, error, (job) => interceptors?.onForceFailed?.(job, error));
    try {
      await writeWhatIsLeft(flow);
      emit("pool:forcefulShutdown:complete", { pool: workerPool, workerPool });
    } catch (failure) {
      emit("pool:forcefulShutdown:error", { pool: workerPool, workerPool, error: failure });
    }
    await lifeline?.deregister();
    const names = jobs.map(({ id, task_identifier }) => `${id} (${task_identifier})`).join(", ");
    await this.#finish(
      jobs.length > 0
        ? new ShutdownError(`${message}; jobs that were still running and are now failed: ${names}`)
        : undefined,
    );
    return { forceFailedJobs: jobs };
  }

  async #finish(failure?: Error): Promise<void> {
    if (this.#isFinished) return; // a forceful shutdown overtook a graceful one
    this.#isFinished = true;
    const { emit, interceptors, workerPool, flow } = this.#options;
    const error = failure ?? flow.writeBack.fatal ?? flow.writeBack.shortfall;
    emit("pool:release", { pool: workerPool, workerPool });
    if (interceptors?.beforeEnd) await interceptors.beforeEnd(error);
    if (error) this.#ended.reject(error);
    else this.#ended.resolve();
  }
}
