import { PayloadError } from "../errors.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, AddJobFunction, AddJobsFunction, Job, TaskSpec } from "../job.ts";
import { $$definition, type AnyTaskDefinition, isTaskDefinition, type PreparedJob } from "../task-definition.ts";
import type { TaskRunSettings } from "../task-options.ts";

interface NameAdders {
  readonly addJob: AddJobFunction;
  readonly addJobs: AddJobsFunction;
}

export interface Adders {
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
}

type Prepare = (definition: AnyTaskDefinition, payload: unknown, spec: TaskSpec) => Promise<PreparedJob>;

/**
 * Makes functions that add by name take definitions too: checked first, with their defaults, and then added by name. `taskOptions` goes
 * before what a definition says.
 */
export function acceptDefinitions(
  { addJob, addJobs }: NameAdders,
  taskOptions: { readonly [name: string]: TaskRunSettings } = {},
): Adders {
  const prepare: Prepare = (definition, payload, spec) => {
    const { identifier } = definition;
    const defaults = Object.hasOwn(taskOptions, identifier) ? defaultsIn(taskOptions[identifier]!, payload) : {};
    return definition[$$definition].prepare(payload, { ...defaults, ...spec });
  };
  return {
    addJob: async (task: string | AnyTaskDefinition, payload: unknown, spec?: TaskSpec): Promise<Job> => {
      if (!isTaskDefinition(task)) return await addJob<string>(task, payload, spec);
      const job = await prepare(task, payload, spec ?? {});
      return await addJob<string>(job.identifier, job.payload, job.spec);
    },
    addJobs: async (specs: readonly object[], jobKeyPreserveRunAt?: boolean): Promise<readonly Job[]> => {
      const hasDefinition = Array.isArray(specs) && specs.some((spec) => definitionIn(spec) !== undefined);
      const named = hasDefinition ? await Promise.all(specs.map((...args) => toNamed(prepare, ...args))) : specs;
      return await addJobs(named as never, jobKeyPreserveRunAt);
    },
  };
}

async function toNamed(prepare: Prepare, given: object, index: number, all: readonly object[]): Promise<object> {
  const definition = definitionIn(given);
  if (!definition) return given;
  const { identifier: _identifier, payload, ...spec } = given as TaskSpec & { identifier: unknown; payload: unknown };
  try {
    const job = await prepare(definition, payload, spec);
    return { ...job.spec, identifier: job.identifier, payload: job.payload };
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    throw new PayloadError(error.taskIdentifier, error.issues, `Job ${index} of ${all.length}: `);
  }
}

/** What task options say about how jobs are added. */
function defaultsIn({ maxAttempts, priority, queueName }: TaskRunSettings, payload: unknown): TaskSpec {
  const name: unknown = queueName;
  const queue = typeof name === "function" ? (name as (payload: unknown) => string)(payload) : queueName;
  return {
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(priority !== undefined && { priority }),
    ...(queue !== undefined && { queueName: queue }),
  };
}

function definitionIn(spec: object | null | undefined): AnyTaskDefinition | undefined {
  const identifier = (spec as { identifier?: unknown } | null | undefined)?.identifier;
  return isTaskDefinition(identifier) ? identifier : undefined;
}
