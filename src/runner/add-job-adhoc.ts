import type { WorkerUtilsOptions } from "../config/options.ts";
import type { Job, PayloadOf, TaskName, TaskSpec } from "../job.ts";
import type { AnyTaskDefinition, TaskInput } from "../task-definition.ts";
import { makeWorkerUtils } from "./worker-utils.ts";

/** Adds a single job and closes everything again; for more than one, `makeWorkerUtils` is cheaper. */
export async function addJobAdhoc<Definition extends AnyTaskDefinition>(
  options: WorkerUtilsOptions,
  task: Definition,
  payload: TaskInput<Definition>,
  spec?: TaskSpec,
): Promise<Job>;
export async function addJobAdhoc<Name extends TaskName = TaskName>(
  options: WorkerUtilsOptions,
  identifier: Name,
  payload: PayloadOf<Name>,
  spec?: TaskSpec,
): Promise<Job>;
export async function addJobAdhoc(
  options: WorkerUtilsOptions,
  task: TaskName & AnyTaskDefinition,
  payload: unknown,
  spec?: TaskSpec,
): Promise<Job> {
  const utils = await makeWorkerUtils(options);
  try {
    return await utils.addJob(task, payload, spec);
  } finally {
    await utils.release();
  }
}

/** @deprecated Use `addJobAdhoc`. */
export const quickAddJob: typeof addJobAdhoc = addJobAdhoc;
