import type { AddAnyJobFunction, Job, TaskSpec } from "./job.ts";
import type { JobHelpers, PromiseOrDirect } from "./task.ts";
import { fileOptionsOf, type TaskRunSettings } from "./task-options.ts";

/**
 * A validator as the Standard Schema describes it (zod, valibot, arktype and others are such). Only its shape is known here, so
 * that no validator has to be installed.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => PromiseOrDirect<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Describes what it takes, where the library can (zod, arktype). */
    readonly jsonSchema?: { readonly input: (options: { readonly target: never }) => unknown } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type TypesOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>;
/** What a validator takes. */
export type InputOf<Schema extends StandardSchema> = TypesOf<Schema>["input"];
/** What a validator makes of it. */
export type OutputOf<Schema extends StandardSchema> = TypesOf<Schema>["output"];

/** What is wrong with a payload, and where: `items[2].id`, or the empty text for the payload itself. */
export interface PayloadIssue {
  readonly path: string;
  readonly message: string;
}

/** A job that is ready to be added by name. */
export interface PreparedJob {
  readonly identifier: string;
  readonly payload: unknown;
  readonly spec: TaskSpec;
}

/** The part of a definition that the rest of the library works with. */
export interface DefinitionParts {
  /** How its jobs run; undefined if nothing was said about it. */
  readonly options?: TaskRunSettings | undefined;
  /** Checks the payload as a worker will see it and puts the definition's defaults under the spec. */
  prepare(payload: unknown, spec: TaskSpec): Promise<PreparedJob>;
  /** What is wrong with a payload that waits in the database; nothing, if the task would take it. */
  check(payload: unknown): Promise<readonly PayloadIssue[]>;
  /** The validator of its payload, or of each item of it. */
  readonly validator?: StandardSchema | undefined;
  readonly takesBatches?: boolean;
}

/** Shared by all copies of this library in a process: task files may load another one. */
export const $$definition: unique symbol = Symbol.for("hathi.task-definition") as never;

/**
 * A task that knows its name, its payload and how its jobs should run. It is a plain task too: it can be called, stand in a
 * task list, and be what a task file exports.
 */
export interface TaskDefinition<Input = unknown, Payload = Input, Result = unknown> {
  (payload: unknown, helpers: JobHelpers): Promise<void | PromiseOrDirect<unknown>[]>;
  readonly identifier: string;
  /** Adds a job for this task through utils, helpers, a runner or what `withTransaction` gave. */
  add(to: { readonly addJob: AddAnyJobFunction }, payload: Input, spec?: TaskSpec): Promise<Job>;
  readonly [$$definition]: DefinitionParts & {
    readonly types?: { readonly input: Input; readonly payload: Payload; readonly result: Result };
  };
}

// biome-ignore lint/suspicious/noExplicitAny: whatever its payload is
export type AnyTaskDefinition = TaskDefinition<any, any, any>;

/** What jobs of a definition are added with. */
export type TaskInput<Definition extends AnyTaskDefinition> = NonNullable<
  Definition[typeof $$definition]["types"]
>["input"];

/** What the task of a definition is handed. */
export type TaskPayload<Definition extends AnyTaskDefinition> = NonNullable<
  Definition[typeof $$definition]["types"]
>["payload"];

/** What a job of a definition gives to those who wait for it. */
export type TaskResult<Definition extends AnyTaskDefinition> = NonNullable<
  Definition[typeof $$definition]["types"]
>["result"];

/** Whether a value was made by `defineTask` or `defineBatchTask`. */
export function isTaskDefinition(value: unknown): value is AnyTaskDefinition {
  return typeof value === "function" && $$definition in value;
}

/** How a task's jobs run, as far as its file or its definition says so; the file goes before the definition. */
export function optionsOfTask(task: object, name: string): TaskRunSettings | undefined {
  const inFile = fileOptionsOf(task, name);
  const defined = isTaskDefinition(task) ? task[$$definition].options : undefined;
  return inFile && defined ? { ...defined, ...inFile } : (inFile ?? defined);
}
