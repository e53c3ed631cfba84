import type { Job } from "../../job.ts";
import type { JobCancelledError, TimeoutError } from "../../job-errors.ts";
import type { Task } from "../../task.ts";
import type { TaskRunSettings } from "../../task-options.ts";
import type { Worker } from "../../worker.ts";
import type { StopSwitch } from "../stop/stop-switch.ts";
import { AbortPromise } from "./abort-promise.ts";
import type { Completion } from "./completions.ts";

/**
 * One attempt of a job, from its start until its task returns. There is one for every job, so what most of them never need is made
 * when it is first asked for: an AbortSignal alone takes as long as everything else that a job is handed.
 */
export class JobRun {
  readonly job: Job;
  readonly task: Task;
  readonly worker: Worker;
  readonly options: TaskRunSettings | undefined;
  /** What stops it together with everything else that runs under the same pool id. */
  readonly stopSwitch: StopSwitch;
  readonly startedAt: number;
  /** Its outcome is decided elsewhere: it was returned, failed from outside, or lost. What it still reports is ignored. */
  isAbandoned = false;
  /** Its attempt was failed for taking too long; its slot and its queue are taken until it returns. */
  isOverrunning = false;
  /** It was cancelled from outside: unless it succeeds, it ends as cancelled. */
  cancelled: JobCancelledError | undefined;
  /** Its task has returned or thrown. */
  isOver = false;
  /** It was completed in a transaction: what becomes of that decides. */
  completion: Completion | undefined;
  /** The database said that its job is no longer its own. What it comes to is not written. */
  isLost = false;
  /** By how much a test has moved the time while it ran. */
  movedMs = 0;
  /** Its time was over before it returned. */
  timedOut: TimeoutError | undefined;
  #controller: AbortController | undefined;
  #reason: Error | undefined;

  constructor(
    job: Job,
    task: Task,
    worker: Worker,
    options: TaskRunSettings | undefined,
    stopSwitch: StopSwitch,
    startedAt: number,
  ) {
    this.job = job;
    this.task = task;
    this.worker = worker;
    this.options = options;
    this.stopSwitch = stopSwitch;
    this.startedAt = startedAt;
  }

  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get promise(): Promise<never> {
    return new AbortPromise(this);
  }

  /** Tells the job to stop; the first reason stays. */
  abort(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
