import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { Worker, WorkerPool } from "../../worker.ts";
import type { Slot } from "../run/slot.ts";

export interface ClaimEventsOptions {
  readonly emit: Emit;
  readonly workerPool: WorkerPool;
  readonly freeSlots: () => readonly Slot[];
}

/** The events of a claim. It is made for the whole pool; whoever listens hears of it from each slot that could take a job, too. */
export class ClaimEvents {
  readonly #options: ClaimEventsOptions;

  constructor(options: ClaimEventsOptions) {
    this.#options = options;
  }

  started(): void {
    this.#forFreeSlots((worker) => this.#options.emit("worker:getJob:start", { worker }));
  }

  answered(jobs: readonly Job[], wanted: number, durationMs: number): void {
    const { emit, workerPool } = this.#options;
    if (emit.heard("claim:complete")) emit("claim:complete", { workerPool, jobs, wanted, durationMs });
  }

  /** There were fewer jobs than there was room for. */
  cameUpEmpty(): void {
    this.#forFreeSlots((worker) => this.#options.emit("worker:getJob:empty", { worker }));
  }

  failed(error: unknown): void {
    const { emit, workerPool } = this.#options;
    emit("claim:error", { workerPool, error });
    this.#forFreeSlots((worker) => emit("worker:getJob:error", { worker, error }));
  }

  #forFreeSlots(say: (worker: Worker) => void): void {
    const { emit, freeSlots } = this.#options;
    if (emit.heard("worker:getJob:start") || emit.heard("worker:getJob:empty") || emit.heard("worker:getJob:error")) {
      for (const slot of freeSlots().toReversed()) say(slot);
    }
  }
}
