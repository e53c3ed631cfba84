import { PayloadError } from "../errors.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, AddJobFunction, AddJobsFunction, Job, TaskSpec } from "../job.ts";
import { $$definition, type AnyTaskDefinition, isTaskDefinition } from "../task-definition.ts";

interface NameAdders {
  readonly addJob: AddJobFunction;
  readonly addJobs: AddJobsFunction;
}

export interface Adders {
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
}

/** Makes functions that add by name take definitions too: checked first, with their defaults, and then added by name. */
export function acceptDefinitions({ addJob, addJobs }: NameAdders): Adders {
  return {
    addJob: async (task: string | AnyTaskDefinition, payload: unknown, spec?: TaskSpec): Promise<Job> => {
      if (!isTaskDefinition(task)) return await addJob<string>(task, payload, spec);
      const job = await task[$$definition].prepare(payload, spec ?? {});
      return await addJob<string>(job.identifier, job.payload, job.spec);
    },
    addJobs: async (specs: readonly object[], jobKeyPreserveRunAt?: boolean): Promise<readonly Job[]> => {
      const hasDefinition = Array.isArray(specs) && specs.some((spec) => definitionIn(spec) !== undefined);
      const named = hasDefinition ? await Promise.all(specs.map(toNamed)) : specs;
      return await addJobs(named as never, jobKeyPreserveRunAt);
    },
  };
}

async function toNamed(given: object, index: number, all: readonly object[]): Promise<object> {
  const definition = definitionIn(given);
  if (!definition) return given;
  const { identifier: _identifier, payload, ...spec } = given as TaskSpec & { identifier: unknown; payload: unknown };
  try {
    const job = await definition[$$definition].prepare(payload, spec);
    return { ...job.spec, identifier: job.identifier, payload: job.payload };
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    throw new PayloadError(error.taskIdentifier, error.issues, `Job ${index} of ${all.length}: `);
  }
}

function definitionIn(spec: object | null | undefined): AnyTaskDefinition | undefined {
  const identifier = (spec as { identifier?: unknown } | null | undefined)?.identifier;
  return isTaskDefinition(identifier) ? identifier : undefined;
}
