import type { Database } from "../db/database.ts";
import { writeProgress } from "../db/statements/watch.ts";
import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import { type JobProgress, readReport } from "../progress.ts";
import { clearTimeout, monotonicMs, setTimeout } from "../util/timers.ts";
import type { Worker } from "../worker.ts";

/** The attempt that reports. */
export interface ReportingRun {
  readonly job: Job;
  readonly worker: Worker;
  readonly isAbandoned: boolean;
}

export interface ProgressRecorderOptions {
  readonly database: Pick<Database, "run">;
  readonly emit: Emit;
  readonly logger: Logger;
  readonly poolId: () => string;
}

interface Entry {
  readonly run: ReportingRun;
  readonly progress: JobProgress;
  isWritten: boolean;
  /** Its job has ended; what was written of it is deleted next time, when that end is settled. */
  isOver: boolean;
}

/** Between two statements. */
const restMs = 1_000;

/** Writes how far the jobs of a pool are, in one statement a second at most, and only for jobs that report it. */
export class ProgressRecorder {
  readonly #options: ProgressRecorderOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #warnedTasks = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #busy: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: ProgressRecorderOptions) {
    this.#options = options;
  }

  /** Never throws: a job must not fail for saying how far it is. */
  report(run: ReportingRun, report: unknown): void {
    if (this.#isClosed || run.isAbandoned) return;
    try {
      this.#entries.set(run.job.id, { run, progress: readReport(report), isWritten: false, isOver: false });
      this.#plan();
    } catch (error) {
      const { task_identifier: task } = run.job;
      if (this.#warnedTasks.has(task)) return;
      this.#warnedTasks.add(task);
      this.#options.logger.warn(`Task '${task}' reported invalid progress, which is ignored. ${String(error)}`, {
        error,
      });
    }
  }

  /** All jobs have ended: what was written of those that are gone is deleted. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#busy;
    for (const entry of this.#entries.values()) entry.isOver = true;
    await this.#write();
  }

  #plan(): void {
    if (this.#timer || this.#busy || this.#isClosed) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#busy = this.#write().finally(() => {
          this.#busy = undefined;
          if (this.#entries.size > 0) this.#plan();
        });
      },
      Math.max(0, this.#writtenAt + restMs - monotonicMs()),
    );
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    this.#writtenAt = monotonicMs();
    const { database, emit, poolId } = this.#options;
    const entries = [...this.#entries.values()];
    const ended = entries.filter(({ isOver }) => isOver);
    for (const entry of entries) entry.isOver = entry.run.worker.getActiveJob() !== entry.run.job;
    const fresh = entries.filter(({ isWritten, isOver }) => !isWritten && !isOver);
    if (fresh.length === 0 && ended.length === 0) return;
    const endedIds = ended.map(({ run }) => run.job.id);
    try {
      await database.run(writeProgress, {
        poolId: poolId(),
        reports: fresh.map(({ run, progress }) => ({ id: run.job.id, ...progress })),
        endedIds,
      });
    } catch {
      return; // the claimer reports an unreachable database, and the next second brings another try
    }
    for (const entry of fresh) {
      entry.isWritten = true;
      const { run, progress } = entry;
      emit("job:progress", { worker: run.worker, job: run.job, progress });
    }
    for (const [index, id] of endedIds.entries()) if (this.#entries.get(id) === ended[index]) this.#entries.delete(id);
  }
}
