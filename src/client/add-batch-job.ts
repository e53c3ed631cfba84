import { JobSpecError } from "../errors.ts";
import type { AddAnyJobFunction, Job, PayloadOf, TaskName, TaskSpec } from "../job.ts";
import { type AnyTaskDefinition, isTaskDefinition, type TaskInput } from "../task-definition.ts";

/** What a batch of a task may hold: the array that was registered as its payload, or anything. */
type BatchOf<Name> =
  unknown extends PayloadOf<Name> ? readonly unknown[] : Readonly<Extract<PayloadOf<Name>, readonly unknown[]>>;

/** Adds one job whose payload is an array. With a job key, items added later join those that still wait. */
export interface AddBatchJobFunction {
  <Definition extends AnyTaskDefinition>(
    task: Definition,
    items: TaskInput<Definition> & readonly unknown[],
    spec?: TaskSpec,
  ): Promise<Job>;
  <Name extends TaskName = TaskName>(identifier: Name, items: BatchOf<Name>, spec?: TaskSpec): Promise<Job>;
}

export function makeAddBatchJob(addJob: AddAnyJobFunction): AddBatchJobFunction {
  return async (task: TaskName | AnyTaskDefinition, items: readonly unknown[], spec?: TaskSpec): Promise<Job> => {
    const isDefined = isTaskDefinition(task);
    if (!Array.isArray(items) || items.length === 0) {
      const got = Array.isArray(items) ? "an empty one" : typeof items;
      const identifier = isDefined ? task.identifier : task;
      throw new JobSpecError(`A batch for task '${identifier}' must be an array with at least one item, got ${got}.`);
    }
    for (const guard of ["debounce", "throttle", "singleton"] as const) {
      if (!spec?.[guard]) continue;
      throw new JobSpecError(
        `'${guard}' cannot be used with 'addBatchJob', since items would be dropped. Use a 'jobKey': items added later join those that wait.`,
      );
    }
    return isDefined ? await addJob(task, items, spec) : await addJob<TaskName>(task, items, spec);
  };
}
