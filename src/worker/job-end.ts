import type { Worker } from "../worker.ts";
import type { Outcome } from "./outcome.ts";
import type { Ending } from "./settler.ts";

/** What is known of a job that has ended. */
interface EndedJob {
  readonly outcome: Outcome;
  readonly error: Error | null;
  readonly worker: Worker;
  readonly durationMs: number;
  readonly releaseQueue: number | null;
}

/** Hears what becomes of ends. */
export interface EndWatcher {
  written(end: EndedJob, isLost: boolean): void;
  givenUp(end: EndedJob, fatal: unknown): void;
}

/** The end of a job that a slot ran. One object and no closures, since there is one for every job. */
export class JobEnd<Kind extends Outcome["kind"]> implements Ending<Kind>, EndedJob {
  readonly outcome: Extract<Outcome, { kind: Kind }>;
  readonly worker: Worker;
  readonly durationMs: number;
  readonly releaseQueue: number | null;
  readonly #watcher: EndWatcher;

  constructor(
    watcher: EndWatcher,
    outcome: Extract<Outcome, { kind: Kind }>,
    worker: Worker,
    durationMs: number,
    releaseQueue: number | null,
  ) {
    this.#watcher = watcher;
    this.outcome = outcome;
    this.worker = worker;
    this.durationMs = durationMs;
    this.releaseQueue = releaseQueue;
  }

  get poolId(): string {
    return this.outcome.job.locked_by!;
  }

  get error(): Error | null {
    const outcome: Outcome = this.outcome;
    return outcome.kind === "failed" ? outcome.error : null;
  }

  onWritten(isLost: boolean): void {
    this.#watcher.written(this, isLost);
  }

  onGivenUp(fatal: unknown): void {
    this.#watcher.givenUp(this, fatal);
  }
}
