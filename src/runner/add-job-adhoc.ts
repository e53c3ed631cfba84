import type { WorkerUtilsOptions } from "../config/options.ts";
import type { Job, PayloadOf, TaskName, TaskSpec } from "../job.ts";
import type { AnyTaskDefinition, TaskInput } from "../task-definition.ts";
import { makeWorkerUtils } from "./worker-utils.ts";

/** Connects, adds one job and disconnects. To add more than one, use `makeWorkerUtils`. */
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

/** @deprecated Use `addJobAdhoc`, its new name. */
export const quickAddJob: typeof addJobAdhoc = addJobAdhoc;
