import { JobSpecError } from "../errors.ts";
import type { AddJobFunction, Job, PayloadOf, TaskName, TaskSpec } from "../job.ts";

/** What a batch of a task may hold: the array that was registered as its payload, or anything. */
export type BatchOf<Name> =
  unknown extends PayloadOf<Name> ? readonly unknown[] : Readonly<Extract<PayloadOf<Name>, readonly unknown[]>>;

/** Adds one job whose payload is an array; with a key, later items join those that still wait. */
export type AddBatchJobFunction = <Name extends TaskName = TaskName>(
  identifier: Name,
  items: BatchOf<Name>,
  spec?: TaskSpec,
) => Promise<Job>;

export function makeAddBatchJob(addJob: AddJobFunction): AddBatchJobFunction {
  return async (identifier, items, spec) => {
    if (!Array.isArray(items) || items.length === 0) {
      const got = Array.isArray(items) ? "an empty one" : typeof items;
      throw new JobSpecError(`A batch for task '${identifier}' must be an array with at least one item, got ${got}.`);
    }
    return await addJob<TaskName>(identifier, items, spec);
  };
}
