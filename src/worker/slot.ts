import { randomBytes } from "node:crypto";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import { deferred } from "../util/deferred.ts";
import type { Worker, WorkerPool } from "../worker.ts";

/** One place in a pool where a job can run. It keeps the identity that per-worker events speak of. */
export class Slot implements Worker {
  readonly workerId: string;
  readonly workerPool: WorkerPool;
  readonly promise: Promise<void>;
  readonly #emit: Emit;
  readonly #stopped = deferred();
  #job: Job | null = null;
  #isReleased = false;
  #isStopped = false;

  constructor(workerPool: WorkerPool, emit: Emit, workerId = `worker-${randomBytes(9).toString("hex")}`) {
    this.workerPool = workerPool;
    this.workerId = workerId;
    this.#emit = emit;
    this.promise = this.#stopped.promise;
  }

  /** Takes no further job. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  get isFree(): boolean {
    return this.#job === null && !this.#isReleased;
  }

  nudge(): boolean {
    const isFree = this.isFree;
    if (isFree) this.workerPool.nudge(1);
    return isFree;
  }

  getActiveJob(): Job | null {
    return this.#job;
  }

  occupy(job: Job): void {
    this.#job = job;
  }

  vacate(): void {
    this.#job = null;
    if (this.#isReleased) this.#stop();
  }

  release(force = false): Promise<void> {
    if (!this.#isReleased) {
      this.#isReleased = true;
      this.#emit("worker:release", { worker: this });
    }
    // After the others were told to release too, as in the original.
    if (force || this.#job === null) queueMicrotask(() => this.#stop());
    return this.promise;
  }

  #stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#emit("worker:stop", { worker: this });
    this.#stopped.resolve();
  }
}
