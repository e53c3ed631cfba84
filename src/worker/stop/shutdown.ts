import { ShutdownError, toError } from "../../errors.ts";
import type { ShutdownReason } from "../../hooks/contexts.ts";
import type { Job } from "../../job.ts";
import { ShutdownAbortError } from "../../job-errors.ts";
import { deferred } from "../../util/deferred.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";
import type { Flow } from "../flow.ts";
import type { PoolOptions } from "../pool-options.ts";
import { cutOff, slotsStopped, writeWhatIsLeft } from "./cut-off.ts";
import { windDown } from "./wind-down.ts";

const overtakenMessage = "forcefulShutdown was initiated whilst gracefulShutdown was still executing.";

/** Why a pool is asked to stop; whether it fails is known at its end. */
export type StopReason = Exclude<ShutdownReason, "error">;

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
  #reason: StopReason = "graceful";
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
  graceful(message: string, reason: StopReason): Promise<void> {
    this.#note(reason);
    if (this.#forceful) return this.#forceful.then(() => undefined);
    if (!this.#graceful) {
      this.#graceful = this.#stopOrElse(message);
      this.#graceful.catch(() => undefined); // an event tells of it, and `ended`
    }
    return this.#graceful;
  }

  /** Fails running jobs; plugins that stand around it cannot prevent it. */
  forceful(message: string, reason: StopReason): Promise<{ forceFailedJobs: readonly Job[] }> {
    this.#note(reason);
    if (this.#isFinished && !this.#forceful) return Promise.resolve({ forceFailedJobs: [] });
    this.#forceful ??= this.#stopNowWhateverHappens(message);
    return this.#forceful;
  }

  /** A signal says more than what it leads to. */
  #note(reason: StopReason): void {
    if (this.#reason !== "signal" && reason !== "graceful") this.#reason = reason;
  }

  async #stopOrElse(message: string): Promise<void> {
    const { emit, hooks, workerPool } = this.#options;
    try {
      await hooks.aroundGracefulShutdown(workerPool, message, () => this.#stop(message));
    } catch (error) {
      emit("pool:gracefulShutdown:error", { pool: workerPool, workerPool, error });
      await this.forceful(toError(error).message, "forceful");
      throw error;
    }
  }

  async #stop(message: string): Promise<void> {
    const { emit, settings, lifeline, workerPool, flow } = this.#options;
    lifeline?.announceStop();
    const abort = (): void => flow.identity.stopSwitch.abort(new ShutdownAbortError(message));
    // A timer fires at once if it is given more than it can count to.
    const abortAfterMs = settings.gracefulShutdownAbortTimeout;
    const abortTimer = abortAfterMs < 2 ** 31 ? setTimeout(abort, abortAfterMs).unref() : undefined;
    emit("pool:gracefulShutdown", { pool: workerPool, workerPool, message });
    try {
      await windDown(
        flow,
        this.#options,
        this.ended.catch(() => undefined),
      );
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
    lifeline?.announceStop();
    emit("pool:forcefulShutdown", { pool: workerPool, workerPool, message });
    const error = new ShutdownError(message);
    const jobs = cutOff(flow, error, (job) => interceptors?.onForceFailed?.(job, error));
    const stopped = slotsStopped(flow);
    try {
      await writeWhatIsLeft(flow);
      await stopped;
      emit("pool:forcefulShutdown:complete", { pool: workerPool, workerPool });
    } catch (failure) {
      emit("pool:forcefulShutdown:error", { pool: workerPool, workerPool, error: failure });
      await stopped;
    }
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
    const { emit, interceptors, lifeline, workerPool, flow } = this.#options;
    const error = failure ?? flow.writeBack.fatal ?? flow.writeBack.shortfall;
    emit("pool:release", { pool: workerPool, workerPool });
    const reason = error && this.#reason === "graceful" ? "error" : this.#reason;
    if (interceptors?.beforeEnd) await interceptors.beforeEnd(reason, error);
    await lifeline?.deregister(flow.writeBack.leavesLocks);
    if (error) this.#ended.reject(error);
    else this.#ended.resolve();
  }
}
