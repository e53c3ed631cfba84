import { ConfigError, PayloadError } from "../errors.ts";
import type { KeptResult } from "../kept-result.ts";
import type { PromiseOrDirect, TaskHelpers } from "../task.ts";
import type { InputOf, OutputOf, StandardSchema, TaskDefinition } from "../task-definition.ts";
import { type DefinedDefaults, makeDefinition } from "./definition.ts";
import { type AnyUpgrade, fitPayload, fitSchema, type Upgrade } from "./fit-payload.ts";

/** What every definition says of its task. */
interface TaskParts<Payload, Returned = unknown, Keep extends boolean = boolean> extends DefinedDefaults<Payload> {
  /** The task's name. A task file must have the same. */
  readonly identifier: string;
  /** Does the work of a job. */
  readonly run: (payload: Payload, helpers: TaskHelpers) => PromiseOrDirect<Returned>;
  readonly keepResult?: Keep;
}

/** A task whose payload a validator checks. */
export interface TaskOptions<
  Schema extends StandardSchema,
  Olds extends readonly unknown[],
  Returned = unknown,
  Keep extends boolean = boolean,
> extends TaskParts<OutputOf<Schema>, Returned, Keep> {
  /** A validator of any library that implements Standard Schema: zod, valibot, arktype and others. */
  readonly payload: Schema;
  /** How payloads of older versions become payloads of this one, oldest first; see `defineTask`. */
  readonly upgrade?: { readonly [Index in keyof Olds]: Upgrade<Olds[Index]> };
}

/** A task whose payload only the compiler checks. */
export interface UncheckedTaskOptions<Payload, Returned = unknown, Keep extends boolean = boolean>
  extends TaskParts<Payload, Returned, Keep> {
  readonly payload?: never;
  readonly upgrade?: never;
}

/**
 * Defines a task: its name, its payload, what it does, and defaults for its jobs.
 *
 * - The payload is stored as given, and checked as it comes back from JSON: a `Date` where the validator expects one is rejected when the
 *   job is added, not when it runs. `run` gets the validator's output.
 * - A job whose payload no longer fits fails with a `PayloadError` that names the field. It is retried like any other, since the next
 *   deployment may accept it.
 * - `upgrade` lists older payloads, oldest first, each with a function to the next version. Payloads carry no version number: one that does not
 *   fit is upgraded from the newest old validator that accepts it. This also covers jobs added by SQL. If an old payload fits the
 *   new validator by accident, make the validator stricter.
 */
export function defineTask<
  Schema extends StandardSchema,
  Olds extends readonly unknown[],
  Returned = unknown,
  Keep extends boolean = boolean,
>(
  options: TaskOptions<Schema, Olds, Returned, Keep>,
): TaskDefinition<InputOf<Schema>, OutputOf<Schema>, KeptResult<Returned, Keep>>;
export function defineTask<Payload = unknown, Returned = unknown, Keep extends boolean = boolean>(
  options: UncheckedTaskOptions<Payload, Returned, Keep>,
): TaskDefinition<Payload, Payload, KeptResult<Returned, Keep>>;
export function defineTask(
  options: TaskParts<never> & { readonly payload?: StandardSchema; readonly upgrade?: readonly AnyUpgrade[] },
): TaskDefinition {
  const { identifier, payload: schema, upgrade: upgrades = [], run } = options;
  if (upgrades.length > 0 && !schema) {
    throw new ConfigError(`Task '${identifier}' has 'upgrade' but no validator as its 'payload' to upgrade to.`);
  }
  const shape = { schema, upgrades };
  return makeDefinition({
    options,
    validator: schema,
    takesBatches: false,
    fitNew: (payload) => fitSchema(schema, payload),
    check: async (payload) => (await fitPayload(shape, payload)).issues ?? [],
    async task(payload, helpers) {
      const fit = await fitPayload(shape, payload);
      if (fit.issues) throw new PayloadError(identifier, fit.issues);
      return (await run(fit.value as never, helpers as TaskHelpers)) as void;
    },
  });
}
