import type { Worker } from "../../worker.ts";
import type { Outcome } from "../run/outcome.ts";

/** A job that has ended, on its way to the written row. One object and no closures, since there is one for every job. */
export class EndedJob<Ended extends Outcome = Outcome> {
  readonly outcome: Ended;
  /** The slot that ran it; null if it was ended from outside, which no event reports. */
  readonly worker: Worker | null;
  readonly durationMs: number;
  /** The queue to release with it, if this was the last job held of it. */
  readonly releaseQueue: number | null;
  /** Called when it is written, or when that is given up; `isLost` if the job was no longer ours. */
  readonly onWritten: ((isLost: boolean) => void) | undefined;
  /** It need not be written: its own transaction has done so, or it is known not to be ours any more. */
  readonly known: "written" | "lost" | undefined;
  /** The statement that writes it is yet to release its queue; until then no other statement may, or the queue would be released twice. */
  isToRelease: boolean;

  constructor(
    outcome: Ended,
    worker: Worker | null,
    durationMs: number,
    releaseQueue: number | null,
    onWritten?: (isLost: boolean) => void,
    known?: "written" | "lost",
  ) {
    this.outcome = outcome;
    this.worker = worker;
    this.durationMs = durationMs;
    this.releaseQueue = releaseQueue;
    this.onWritten = onWritten;
    this.known = known;
    this.isToRelease = releaseQueue !== null;
  }

  get jobId(): string {
    return this.outcome.job.id;
  }

  /** The pool the job was claimed under. */
  get poolId(): string {
    return this.outcome.job.locked_by!;
  }

  get error(): Error | null {
    const outcome: Outcome = this.outcome;
    return outcome.kind === "succeeded" ? null : outcome.error;
  }
}
