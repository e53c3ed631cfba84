import type { Job } from "../../job.ts";
import type { TimeoutError } from "../../job-errors.ts";
import { monotonicMs } from "../../util/timers.ts";
import { EndedJob } from "../settle/ended-job.ts";
import type { Settler } from "../settle/settler.ts";
import type { Completions } from "./completions.ts";
import { decide } from "./decide.ts";
import type { HeldJobs } from "./held-jobs.ts";
import type { JobRun } from "./job-run.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import type { Overruns } from "./overruns.ts";

const notCommitted =
  "The task completed its job in a transaction, and returned; but the transaction was not committed, so nothing of it has happened.";

export interface EndsOptions {
  /** Takes it from here: how a job ended is announced and written. */
  readonly settler: Pick<Settler, "settle">;
  readonly overruns: Overruns;
  readonly completions: Completions;
  /** A job was completed by its transaction, and its task threw all the same. */
  readonly onThrownAfterCommit: (job: Job, error: Error) => void;
  /** A task's own back-off failed; the usual one counts. */
  readonly onBadBackoff: (error: unknown) => void;
  readonly held: Pick<HeldJobs, "ended">;
}

/** What a run came to, and whether the database already has it. */
export interface RunEnd {
  readonly outcome: RunOutcome;
  readonly known: EndedJob["known"];
}

/** How runs end: their task returns, their transaction decides, or their time is over. Each end is handed over once. */
export class Ends {
  readonly #options: EndsOptions;

  constructor(options: EndsOptions) {
    this.#options = options;
  }

  /** A task has returned, or the run was cancelled before it began. True if the slot is needed again. */
  ended(run: JobRun, outcome: RunOutcome, durationMs: number, known: EndedJob["known"]): boolean {
    const { overruns, settler, onBadBackoff, held } = this.#options;
    if (run.isOverrunning) return !overruns.returned(run, held.ended(run.job));
    if (!run.isAbandoned || known === "written") {
      const queueId = run.isAbandoned ? null : held.ended(run.job);
      const decided = decide(run, outcome, onBadBackoff);
      settler.settle(new EndedJob(decided, run.worker, durationMs, queueId, undefined, known ?? lost(run)));
    }
    return true;
  }

  /** A job that was completed in a transaction has succeeded if that was committed, and only then, whatever its task did after it. */
  async ofCompleted(run: JobRun, ended: RunOutcome): Promise<RunEnd> {
    const { job, completion } = run;
    await completion!.underWay;
    if (await this.#isCommitted(run)) {
      if (ended.kind === "failed") this.#options.onThrownAfterCommit(job, ended.error);
      return { outcome: { kind: "succeeded", job }, known: "written" };
    }
    const outcome = ended.kind === "failed" ? ended : failed(job, new Error(notCommitted));
    return { outcome, known: lost(run) };
  }

  /** A run has had its time. */
  overran(run: JobRun, error: TimeoutError): void {
    if (run.completion?.transaction === undefined) this.#overran(run, error, lost(run));
    else void this.#overranCompleted(run, error);
  }

  /** Fails a job from outside; resolves to whether it was no longer ours, or could not be written. */
  fail(job: Job, error: Error, queueId: number | null): Promise<boolean> {
    return new Promise((resolve) => {
      this.#options.settler.settle(new EndedJob(failed(job, error), null, 0, queueId, resolve));
    });
  }

  /** A transaction that is open has its own time limit, and what becomes of it counts. */
  async #overranCompleted(run: JobRun, error: TimeoutError): Promise<void> {
    const known = (await this.#isCommitted(run)) ? "written" : undefined;
    if (!run.isOver && !run.isAbandoned) this.#overran(run, error, known);
  }

  /** The attempt has ended, but its task goes on: its slot and its queue stay taken. */
  #overran(run: JobRun, error: TimeoutError, known: RunEnd["known"]): void {
    const { overruns, settler, onBadBackoff } = this.#options;
    run.isAbandoned = true;
    run.isOverrunning = true;
    const onWritten = overruns.begin(run, error);
    const ended: RunOutcome = known === "written" ? { kind: "succeeded", job: run.job } : failed(run.job, error);
    const outcome = decide(run, ended, onBadBackoff);
    settler.settle(new EndedJob(outcome, run.worker, monotonicMs() - run.startedAt, null, onWritten, known));
  }

  #isCommitted(run: JobRun): Promise<boolean> {
    // The pool has given up on the database, and says so when it cannot write the failure either.
    return this.#options.completions.isCommitted(run).catch(() => false);
  }
}

function lost({ isLost }: JobRun): "lost" | undefined {
  return isLost ? "lost" : undefined;
}
