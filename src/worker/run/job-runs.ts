import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { Task, TaskHelpers, TaskList } from "../../task.ts";
import type { TaskRunSettings } from "../../task-options.ts";
import { refusalOf } from "../claim/unreadable.ts";
import type { PoolInterceptors } from "../pool-hooks.ts";
import type { StopSwitch } from "../stop/stop-switch.ts";
import type { Completions } from "./completions.ts";
import type { MakeHelpers } from "./helpers.ts";
import { JobRun } from "./job-run.ts";
import type { RunOutcome } from "./outcome.ts";
import { runTask } from "./run-task.ts";
import type { Slot } from "./slot.ts";

export interface JobRunsOptions {
  readonly tasks: TaskList;
  readonly emit: Emit;
  readonly makeHelpers: MakeHelpers;
  readonly aroundRun: PoolInterceptors["aroundRun"] | undefined;
  readonly stopSwitch: () => StopSwitch;
  /** How jobs of this task run; undefined if it has no options. */
  readonly taskOptions: (name: string, task: Task) => TaskRunSettings | undefined;
  readonly completions: Completions;
  /** Runs a task whose transaction commits with the completion of its job. */
  readonly runInTransaction: (run: JobRun, helpers: TaskHelpers) => Promise<RunOutcome>;
}

/** Gives each job its run, and takes the run through the hooks and the task to an outcome. */
export class JobRuns {
  readonly #options: JobRunsOptions;

  constructor(options: JobRunsOptions) {
    this.#options = options;
  }

  make(job: Job, slot: Slot, startedAt: number): JobRun {
    const { tasks, taskOptions, stopSwitch } = this.#options;
    const task = refusalOf(job) ?? (tasks[job.task_identifier] as Task);
    return new JobRun(job, task, slot, taskOptions(job.task_identifier, task), stopSwitch(), startedAt);
  }

  /** Never rejects: whatever happens is an outcome. */
  begin(run: JobRun): Promise<RunOutcome> {
    const around = this.#options.aroundRun?.();
    if (!around) return this.#begin(run);
    return around(
      run.job,
      () => this.#begin(run),
      () => run.isAbandoned,
    );
  }

  #begin(run: JobRun): Promise<RunOutcome> {
    const { emit, makeHelpers, completions, runInTransaction } = this.#options;
    const { job, worker } = run;
    if (emit.heard("job:start")) emit("job:start", { worker, job });
    const helpers = makeHelpers(run, completions);
    return run.options?.transactional ? runInTransaction(run, helpers) : runTask(run, helpers);
  }
}
