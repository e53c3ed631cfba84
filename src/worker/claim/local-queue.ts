import type { LocalQueueSettings } from "../../config/local-queue-options.ts";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";
import type { LocalQueue, LocalQueueMode } from "../../worker.ts";

/** What Graphile Worker's `localQueue` options ask for: its modes and events, and the rest between claims. */
export class LocalQueueView implements LocalQueue {
  readonly #settings: LocalQueueSettings;
  readonly #emit: Emit;
  #mode: LocalQueueMode = "STARTING";
  #rest: { timer: NodeJS.Timeout; pulses: number; abortThreshold: number; onOver: () => void } | undefined;

  constructor(settings: LocalQueueSettings, emit: Emit) {
    this.#settings = settings;
    this.#emit = emit;
  }

  get mode(): LocalQueueMode {
    return this.#mode;
  }

  /** No claim should be made now. */
  get isResting(): boolean {
    return this.#rest !== undefined;
  }

  start(): void {
    this.#emit("localQueue:init", { localQueue: this });
    this.#setMode("POLLING");
  }

  /** A claim goes out. */
  polling(): void {
    if (this.#mode === "TTL_EXPIRED") this.#setMode("POLLING");
  }

  claimed(jobs: readonly Job[], wanted: number, onRestOver: () => void): void {
    this.#emit("localQueue:getJobs:complete", { localQueue: this, jobs });
    if (this.#mode === "RELEASED") return;
    const { refetchDelay } = this.#settings;
    if (!refetchDelay || jobs.length >= wanted || jobs.length > refetchDelay.threshold) return;
    const delayMs = (0.5 + Math.random()) * refetchDelay.durationMs;
    const abortThreshold = Math.random() * refetchDelay.maxAbortThreshold;
    this.#emit("localQueue:refetchDelay:start", {
      localQueue: this,
      jobCount: jobs.length,
      threshold: refetchDelay.threshold,
      delayMs,
      abortThreshold,
    });
    this.#endRest();
    const timer = setTimeout(() => {
      this.#emit("localQueue:refetchDelay:expired", { localQueue: this });
      this.#endRest();
    }, delayMs);
    this.#rest = { timer, pulses: 0, abortThreshold, onOver: onRestOver };
  }

  /** New jobs are announced; enough of them end a rest early. */
  pulse(count: number): void {
    if (!this.#rest) return;
    this.#rest.pulses += count;
    if (this.#rest.pulses < this.#rest.abortThreshold) return;
    this.#emit("localQueue:refetchDelay:abort", {
      localQueue: this,
      count: this.#rest.pulses,
      abortThreshold: this.#rest.abortThreshold,
    });
    this.#endRest();
  }

  /** There were more jobs than slots to run them. */
  holding(): void {
    if (this.#mode === "POLLING") this.#setMode("WAITING");
  }

  /** The last job was handed on. */
  drained(): void {
    if (this.#mode === "WAITING") this.#setMode("POLLING");
  }

  /** Jobs waited here for longer than they may. */
  expire(): void {
    this.#setMode("TTL_EXPIRED");
  }

  returned(jobs: readonly Job[]): void {
    this.#emit("localQueue:returnJobs", { localQueue: this, jobs });
  }

  release(): void {
    if (this.#mode === "RELEASED") return;
    clearTimeout(this.#rest?.timer);
    this.#rest = undefined;
    this.#setMode("RELEASED");
  }

  #endRest(): void {
    const rest = this.#rest;
    this.#rest = undefined;
    clearTimeout(rest?.timer);
    rest?.onOver();
  }

  #setMode(newMode: LocalQueueMode): void {
    if (newMode === this.#mode) return;
    const oldMode = this.#mode;
    this.#mode = newMode;
    this.#emit("localQueue:setMode", { localQueue: this, oldMode, newMode });
  }
}
