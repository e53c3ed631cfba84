import { ConfigError, PayloadError } from "../errors.ts";
import type { JobHelpers, PromiseOrDirect } from "../task.ts";
import type { InputOf, OutputOf, StandardSchema, TaskDefinition } from "../task-definition.ts";
import { type DefinedDefaults, makeDefinition } from "./definition.ts";
import { type AnyUpgrade, fitPayload, fitSchema, type Upgrade } from "./fit-payload.ts";

/** What every definition says of its task. */
interface TaskParts<Payload> extends DefinedDefaults<Payload> {
  /** The task's name. A task file must have the same. */
  readonly identifier: string;
  /** Does the work of a job, with a payload that fits. */
  readonly run: (payload: Payload, helpers: JobHelpers) => PromiseOrDirect<unknown>;
}

/** A task whose payload a validator checks. */
export interface TaskOptions<Schema extends StandardSchema, Olds extends readonly unknown[]>
  extends TaskParts<OutputOf<Schema>> {
  /** A validator of any library that knows the Standard Schema: zod, valibot, arktype and others. */
  readonly payload: Schema;
  /** How payloads of older versions become payloads of this one, oldest first; see `defineTask`. */
  readonly upgrade?: { readonly [Index in keyof Olds]: Upgrade<Olds[Index]> };
}

/** A task whose payload only the compiler checks. */
export interface UncheckedTaskOptions<Payload> extends TaskParts<Payload> {
  readonly payload?: never;
  readonly upgrade?: never;
}

/**
 * Defines a task: its name, its payload, what it does, and how its jobs run unless a job says otherwise.
 *
 * - What is stored is the payload as it was given, and what is checked is that payload as it comes back from JSON: a `Date`
 *   where the validator wants one is refused when the job is added, not when it runs. `run` gets what the validator makes of it.
 * - A job that no longer fits fails with a `PayloadError` that names the place, and is tried again like any other: the next
 *   build may know better.
 * - `upgrade` is a list of older payloads, oldest first, each with a function to the next one. Payloads carry no version: one
 *   that does not fit as it is goes up from the newest old validator that it fits. So jobs that were added before anybody
 *   thought of versions, or by SQL, can be upgraded as well. Where an old payload would fit the new validator by accident, make
 *   the validator stricter.
 */
export function defineTask<Schema extends StandardSchema, Olds extends readonly unknown[]>(
  options: TaskOptions<Schema, Olds>,
): TaskDefinition<InputOf<Schema>, OutputOf<Schema>>;
export function defineTask<Payload = unknown>(options: UncheckedTaskOptions<Payload>): TaskDefinition<Payload>;
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
    fitNew: (payload) => fitSchema(schema, payload),
    check: async (payload) => (await fitPayload(shape, payload)).issues ?? [],
    async task(payload, helpers) {
      const fit = await fitPayload(shape, payload);
      if (fit.issues) throw new PayloadError(identifier, fit.issues);
      return (await run(fit.value as never, helpers)) as void;
    },
  });
}
