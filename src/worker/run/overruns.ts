import type { Database } from "../../db/database.ts";
import { forgetOverrun, noteOverrun } from "../../db/statements/control.ts";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { TimeoutError } from "../../job-errors.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { JobRun } from "./job-run.ts";
import type { Slot } from "./slot.ts";

export interface OverrunsOptions {
  readonly database: Database;
  readonly emit: Emit;
  /** Makes a slot that takes the place of one that is stuck. */
  readonly addSlot: () => Slot;
  /** Takes a slot out of service whose place was taken. */
  readonly dropSlot: (slot: Slot) => void;
  /** Lets go of a queue whose job has returned at last. */
  readonly releaseQueue: (queueId: number, poolId: string) => void;
}

interface Overrun {
  readonly run: JobRun;
  /** Set when the task has returned: the queue to release, if any. */
  returned: { readonly queueId: number | null } | undefined;
  isFailureWritten: boolean;
  hasReplacement: boolean;
}

/**
 * Attempts that were failed for taking too long, and whose tasks have not returned. What holds until they do: the slot is taken, the
 * named queue is locked, and this process does not start the same job again (`overlaps.ts`). The row itself is settled, so others may try it.
 */
export class Overruns {
  readonly #options: OverrunsOptions;
  readonly #byRun = new Map<JobRun, Overrun>();

  constructor(options: OverrunsOptions) {
    this.#options = options;
  }

  jobs(): Job[] {
    return [...this.#byRun.keys()].map(({ job }) => job);
  }

  /** A job overruns from now on; the function is to be called when its failure is written. */
  begin(run: JobRun, error: TimeoutError): () => void {
    const { emit, database } = this.#options;
    const { job, worker } = run;
    const overrun: Overrun = { run, returned: undefined, isFailureWritten: false, hasReplacement: false };
    overrun.hasReplacement = this.#mayReplace(run);
    this.#byRun.set(run, overrun);
    const durationMs = monotonicMs() - run.startedAt;
    emit("job:overrun", { worker, job, durationMs, timeoutMs: error.timeoutMs, isReplaced: overrun.hasReplacement });
    void database
      .run(noteOverrun, { ...keyOf(job), task: job.task_identifier, durationMs, timeoutMs: error.timeoutMs })
      .catch(() => undefined); // it only informs
    if (overrun.hasReplacement) this.#options.addSlot();
    return () => {
      overrun.isFailureWritten = true;
      this.#end(overrun);
    };
  }

  /** Its task has returned at last. Gives true if its slot is no longer needed. */
  returned(run: JobRun, queueId: number | null): boolean {
    const overrun = this.#byRun.get(run);
    if (!overrun) return false;
    overrun.returned = { queueId };
    this.#byRun.delete(run);
    void this.#options.database.run(forgetOverrun, keyOf(run.job)).catch(() => undefined);
    if (overrun.hasReplacement) this.#options.dropSlot(run.worker as Slot);
    this.#end(overrun);
    return overrun.hasReplacement;
  }

  /** The process is about to end, so nothing of ours can overlap any more: lets go of the queues. */
  abandon(): void {
    for (const { job } of this.#byRun.keys()) {
      if (job.job_queue_id !== null) this.#options.releaseQueue(job.job_queue_id, job.locked_by!);
    }
  }

  /** Released before the failure is written, the queue would be kept: its job would still be ours. */
  #end({ run, returned, isFailureWritten }: Overrun): void {
    if (!returned || !isFailureWritten || returned.queueId === null) return;
    this.#options.releaseQueue(returned.queueId, run.job.locked_by!);
  }

  #mayReplace({ job, options }: JobRun): boolean {
    let replaced = 0;
    for (const { run, hasReplacement } of this.#byRun.values()) {
      if (hasReplacement && run.job.task_identifier === job.task_identifier) replaced++;
    }
    return replaced < (options?.replaceStuckSlots ?? 0);
  }
}

function keyOf({ id, attempts, locked_by }: Job): { jobId: string; attempt: number; workerId: string } {
  return { jobId: id, attempt: attempts, workerId: locked_by! };
}
