import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { TimeoutError } from "../../job-errors.ts";
import { defaultAbortGraceMs } from "../../task-options.ts";
import { clearTimeout, monotonicMs, setTimeout } from "../../util/timers.ts";
import type { JobRun } from "./job-run.ts";

/** Where a test tells by how many milliseconds it has moved the time of this process. */
const movedTime = "hathi:testing:moved-time";

/** Node's timers fire at once when asked for more. */
const maxTimerMs = 2 ** 31 - 1;

export interface DeadlinesOptions {
  /** What runs now. */
  readonly runs: () => Iterable<JobRun>;
  /** A job's signal has aborted. */
  readonly onTimeout: (run: JobRun, error: TimeoutError) => void;
  /** A job has had its time and its grace, and has not returned. */
  readonly onOverrun: (run: JobRun, error: TimeoutError) => void;
}

/**
 * Tells jobs that their time is over. One timer for all of them, set for the earliest deadline that is known: a job that ends in time
 * costs no timer of its own.
 */
export class Deadlines {
  readonly #options: DeadlinesOptions;
  #timer: NodeJS.Timeout | undefined;
  #checksAt = Infinity;
  readonly #onMoved = (ms: unknown): void => {
    if (typeof ms !== "number") return;
    for (const run of this.#options.runs()) run.movedMs += ms;
    this.#check();
  };

  constructor(options: DeadlinesOptions) {
    this.#options = options;
  }

  /** A job that has a timeout was started. */
  watch({ startedAt, options }: JobRun): void {
    this.#checkAt(startedAt + options!.timeout!);
  }

  #checkAt(at: number): void {
    if (at >= this.#checksAt) return;
    if (this.#checksAt === Infinity) subscribe(movedTime, this.#onMoved);
    this.#checksAt = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), Math.min(Math.max(1, Math.ceil(at - monotonicMs())), maxTimerMs));
    // A job that has ended leaves its deadline behind, which must not keep a process that is through.
    this.#timer.unref();
  }

  #check(): void {
    if (this.#checksAt !== Infinity) unsubscribe(movedTime, this.#onMoved);
    this.#checksAt = Infinity;
    const now = monotonicMs();
    for (const run of this.#options.runs()) {
      if (run.options?.timeout === undefined || run.isAbandoned) continue;
      const nextAt = this.#checkRun(run, run.options.timeout, now);
      if (nextAt !== undefined) this.#checkAt(nextAt);
    }
  }

  /** Gives when to check this job again. */
  #checkRun(run: JobRun, timeoutMs: number, now: number): number | undefined {
    const signalAt = run.startedAt + timeoutMs - run.movedMs;
    if (now < signalAt) return signalAt;
    if (!run.timedOut) {
      run.timedOut = new TimeoutError(timeoutMs);
      this.#options.onTimeout(run, run.timedOut);
      run.abort(run.timedOut);
    }
    const endAt = signalAt + (run.options?.abortGrace ?? defaultAbortGraceMs);
    if (now < endAt) return endAt;
    this.#options.onOverrun(run, run.timedOut);
    return undefined;
  }
}
