import { randomBytes } from "node:crypto";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import { deferred } from "../../util/deferred.ts";
import { queueMicrotask } from "../../util/timers.ts";
import type { Worker, WorkerPool } from "../../worker.ts";
import type { JobRun } from "./job-run.ts";

/** One place in a pool where a job can run. It keeps the identity that per-worker events speak of. */
export class Slot implements Worker {
  readonly workerId: string;
  readonly workerPool: WorkerPool;
  readonly promise: Promise<void>;
  readonly #emit: Emit;
  readonly #beforeStop: (slot: Slot) => Promise<void>;
  readonly #stopped = deferred();
  #run: JobRun | null = null;
  #isReleased = false;
  #isStopped = false;

  /** `beforeStop` is called once it takes no further job and runs none, and must not reject. */
  constructor(
    workerPool: WorkerPool,
    emit: Emit,
    beforeStop: (slot: Slot) => Promise<void>,
    workerId = `worker-${randomBytes(9).toString("hex")}`,
  ) {
    this.workerPool = workerPool;
    this.workerId = workerId;
    this.#emit = emit;
    this.#beforeStop = beforeStop;
    this.promise = this.#stopped.promise;
  }

  /** Takes no further job. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  get isFree(): boolean {
    return this.#run === null && !this.#isReleased;
  }

  nudge(): boolean {
    const isFree = this.isFree;
    if (isFree) this.workerPool.nudge(1);
    return isFree;
  }

  /** What runs in it. */
  get run(): JobRun | null {
    return this.#run;
  }

  getActiveJob(): Job | null {
    return this.#run === null ? null : this.#run.job;
  }

  occupy(run: JobRun): void {
    this.#run = run;
  }

  vacate(): void {
    this.#run = null;
    if (this.#isReleased) this.#stop();
  }

  release(force = false): Promise<void> {
    if (!this.#isReleased) {
      this.#isReleased = true;
      this.#emit("worker:release", { worker: this });
    }
    // After the release of the others has begun, as in the original.
    if (force || this.#run === null) queueMicrotask(() => this.#stop());
    return this.promise;
  }

  #stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    void this.#beforeStop(this).then(() => {
      this.#emit("worker:stop", { worker: this });
      this.#stopped.resolve();
    });
  }
}
