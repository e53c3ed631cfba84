import { ConfigError, JobSpecError, PayloadError, toError } from "../errors.ts";
import type { GuardOptions } from "../guards.ts";
import type { TaskSpec } from "../job.ts";
import type { Task } from "../task.ts";
import {
  $$definition,
  type DefinitionParts,
  type PreparedJob,
  type StandardSchema,
  type TaskDefinition,
} from "../task-definition.ts";
import { readTaskOptions, type TaskRunOptions, type TaskRunSettings, taskOptionNames } from "../task-options.ts";
import { suggestion } from "../util/nearest.ts";
import type { Fit } from "./fit-payload.ts";

/** A value, or how to get it from the payload. */
type FromPayload<Payload, Value> = Value | ((payload: Payload) => Value | undefined);

/** How jobs of a task run unless they say otherwise; some of it may depend on the payload. */
export interface DefinedDefaults<Payload>
  extends Pick<TaskSpec, "maxAttempts" | "priority" | "flags">,
    Omit<TaskRunOptions, "maxAttempts" | "priority" | "queueName"> {
  readonly queueName?: FromPayload<Payload, string>;
  readonly jobKey?: FromPayload<Payload, string>;
  readonly debounce?: FromPayload<Payload, NonNullable<GuardOptions["debounce"]>>;
  readonly throttle?: FromPayload<Payload, NonNullable<GuardOptions["throttle"]>>;
  readonly singleton?: FromPayload<Payload, NonNullable<GuardOptions["singleton"]>>;
}

interface DefinitionSource {
  readonly options: DefinedDefaults<never> & { readonly identifier: string; readonly run: unknown };
  /** Fits the payload of a job that is to be added. */
  readonly fitNew: (payload: unknown) => Promise<Fit>;
  readonly check: DefinitionParts["check"];
  readonly validator: StandardSchema | undefined;
  readonly takesBatches: boolean;
  readonly task: Task;
}

/** Makes a task that can be called, added and checked. */
export function makeDefinition({ options, fitNew, task, ...parts }: DefinitionSource): TaskDefinition {
  const { identifier } = options;
  if (typeof identifier !== "string" || identifier === "") {
    throw new ConfigError(`'identifier' of a task must be a non-empty string, got ${JSON.stringify(identifier)}.`);
  }
  if (typeof options.run !== "function") {
    throw new ConfigError(`'run' of task '${identifier}' must be a function, got ${typeof options.run}.`);
  }
  const settings = readOptions(options);
  const prepare = async (payload: unknown, spec: TaskSpec): Promise<PreparedJob> => {
    const fit = await fitNew(asWorkerSees(payload, identifier));
    if (fit.issues) throw new PayloadError(identifier, fit.issues);
    return { identifier, payload, spec: underSpec(defaultsFor(fit.value, options), withoutUndefined(spec)) };
  };
  const definition: TaskDefinition = Object.assign(
    async (payload: unknown, helpers: Parameters<Task>[1]) => await task(payload, helpers),
    {
      identifier,
      add: ((to, payload, spec) => to.addJob(definition, payload, spec)) as TaskDefinition["add"],
      [$$definition]: { ...parts, prepare, options: settings },
    },
  );
  // Stack traces and logs show it.
  return Object.defineProperty(definition, "name", { value: identifier });
}

/** What a definition may say beside its task options. */
const otherKeys = [
  "identifier",
  "run",
  "payload",
  "item",
  "upgrade",
  "flags",
  "jobKey",
  "debounce",
  "throttle",
  "singleton",
];

function readOptions(options: DefinitionSource["options"]): TaskRunSettings | undefined {
  const { identifier } = options;
  const given = Object.entries(options).filter(([key]) => !otherKeys.includes(key));
  for (const [key] of given) {
    if (taskOptionNames.includes(key)) continue;
    const known = [...taskOptionNames, ...otherKeys];
    throw new ConfigError(`Unknown key '${key}' in the definition of task '${identifier}'.${suggestion(key, known)}`);
  }
  return given.length > 0 ? readTaskOptions(Object.fromEntries(given), `task '${identifier}'`) : undefined;
}

/** A payload comes back from the database as JSON has it, and nothing stands for `{}`. */
function asWorkerSees(payload: unknown, identifier: string): unknown {
  try {
    return JSON.parse(JSON.stringify(payload ?? {})) as unknown;
  } catch (thrown) {
    const [reason] = toError(thrown).message.split("\n");
    throw new JobSpecError(`The payload for task '${identifier}' cannot be written as JSON: ${reason}.`, {
      cause: thrown,
    });
  }
}

function defaultsFor(payload: unknown, options: DefinedDefaults<never>): TaskSpec {
  const { maxAttempts, priority, flags, ...depending } = options as DefinedDefaults<unknown>;
  const from = <Value>(value: FromPayload<unknown, Value> | undefined): Value | undefined =>
    typeof value === "function" ? (value as (payload: unknown) => Value | undefined)(payload) : value;
  return withoutUndefined({
    maxAttempts,
    priority,
    flags,
    queueName: from(depending.queueName),
    jobKey: from(depending.jobKey),
    debounce: from(depending.debounce),
    throttle: from(depending.throttle),
    singleton: from(depending.singleton),
  });
}

/** Of these a job has one. */
const exclusive = ["jobKey", "debounce", "throttle", "singleton"] as const;

/** What the add says goes before what the definition says; so does any guard or key that it names. */
function underSpec(defaults: TaskSpec, spec: TaskSpec): TaskSpec {
  const kept = { ...defaults };
  if (exclusive.some((key) => key in spec)) for (const key of exclusive) delete kept[key];
  return { ...kept, ...spec };
}

function withoutUndefined(spec: object): TaskSpec {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));
}
