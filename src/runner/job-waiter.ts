import type { JobWatch } from "../history/job-watch.ts";
import { onProgress, type ProgressOptions } from "../history/on-progress.ts";
import { checkWaitOptions, type WaitOptions, waitForJob } from "../history/wait-for-job.ts";
import type { AddAnyJobFunction, PayloadOf, TaskName, TaskSpec } from "../job.ts";
import type { JobId } from "../job-checks.ts";
import type { ReportedProgress } from "../progress.ts";
import type { AnyTaskDefinition, TaskDefinition, TaskInput, TaskResult } from "../task-definition.ts";

/** How to add a job and wait for it. */
export interface AddAndWaitOptions extends TaskSpec, WaitOptions {}

/** Adds one job and waits for its end. */
export interface AddJobAndWaitFunction {
  <Definition extends AnyTaskDefinition>(
    task: Definition,
    payload: TaskInput<Definition>,
    options?: AddAndWaitOptions,
  ): Promise<TaskResult<Definition>>;
  <Name extends TaskName = TaskName>(
    identifier: Name,
    payload: PayloadOf<Name>,
    options?: AddAndWaitOptions,
  ): Promise<unknown>;
}

/** Waits for jobs to end. */
export interface JobWaiter {
  /**
   * Resolves with the result of the job, or rejects with a `JobFailedError` once it has failed permanently or was cancelled. Its task needs
   * `keepResult`, or `history`: then the promise resolves with undefined. `waitForJob<typeof task>` gives the promise the type of a definition's result.
   */
  waitForJob<Definition extends AnyTaskDefinition = TaskDefinition>(
    id: JobId,
    options?: WaitOptions,
  ): Promise<TaskResult<Definition>>;
  /** How far a job is, whenever that has changed, until it has ended: `for await (const { done, total } of utils.onProgress(id))`. */
  onProgress(id: JobId, options?: ProgressOptions): AsyncIterable<ReportedProgress>;
  /** Adds a job and waits for it as `waitForJob` does, however soon it ends. */
  addJobAndWait: AddJobAndWaitFunction;
}

export function makeJobWaiter(watch: JobWatch, addJob: AddAnyJobFunction): JobWaiter {
  return {
    waitForJob: ((id, options) => waitForJob(watch, id, options)) as JobWaiter["waitForJob"],
    onProgress: (id, options) => onProgress(watch, id, options),
    addJobAndWait: (async (
      task: string,
      payload: unknown,
      { signal, timeout, ...spec }: AddAndWaitOptions = {},
    ): Promise<unknown> => {
      const options = { signal, timeout };
      checkWaitOptions(options);
      signal?.throwIfAborted();
      const { id } = await addJob(task, payload, spec);
      return await waitForJob(watch, id, options);
    }) as JobWaiter["addJobAndWait"],
  };
}
