import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { JobCancelledError } from "../../job-errors.ts";
import type { JobRun } from "./job-run.ts";
import type { RunningJobs } from "./running-jobs.ts";

export interface CancelsOptions {
  readonly emit: Emit;
  readonly running: RunningJobs;
  /** Claimed jobs that are not started, those included whose payload is being read. */
  readonly notStarted: () => readonly Job[];
}

/** Cancels of the jobs of this pool. A running job gets its abort signal; one that has not started ends instead of starting. */
export class Cancels {
  readonly #options: CancelsOptions;
  /** Why claimed jobs that are not started must not start, by id. */
  readonly #errorById = new Map<string, JobCancelledError>();

  constructor(options: CancelsOptions) {
    this.#options = options;
  }

  /** The ids of jobs that are not known to be cancelled. */
  candidates(): string[] {
    const { running, notStarted } = this.#options;
    const runs = running.runs().filter((run) => !run.cancelled && (!run.isAbandoned || run.isOverrunning));
    const waiting = notStarted().filter(({ id }) => !this.#errorById.has(id));
    return [...runs.map(({ job }) => job), ...waiting].map(({ id }) => id);
  }

  /** A job that runs counts as cancelled unless it succeeds. */
  cancel(jobId: string, error: JobCancelledError): void {
    const { emit, running } = this.#options;
    const run = running.runs().find(({ job }) => job.id === jobId);
    if (!run) {
      this.#keepFromStarting(jobId, error);
      return;
    }
    if (run.cancelled) return;
    run.cancelled = error;
    emit("job:cancelling", { worker: run.worker, job: run.job, error });
    run.abort(error);
  }

  /** Whether this run was cancelled before its task began. */
  stops(run: JobRun): boolean {
    if (this.#errorById.size === 0) return false;
    run.cancelled = this.#errorById.get(run.job.id);
    return run.cancelled !== undefined && this.#errorById.delete(run.job.id);
  }

  /** Nothing starts any more. */
  clear(): void {
    this.#errorById.clear();
  }

  #keepFromStarting(jobId: string, error: JobCancelledError): void {
    const waiting = new Set(this.#options.notStarted().map(({ id }) => id));
    if (waiting.has(jobId)) this.#errorById.set(jobId, error);
    for (const id of this.#errorById.keys()) if (!waiting.has(id)) this.#errorById.delete(id);
  }
}
