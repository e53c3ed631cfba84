import { PayloadError, toError } from "../errors.ts";
import type { PromiseOrDirect, TaskHelpers } from "../task.ts";
import type { InputOf, OutputOf, PayloadIssue, StandardSchema, TaskDefinition } from "../task-definition.ts";
import { type DefinedDefaults, makeDefinition } from "./definition.ts";
import {
  type AnyUpgrade,
  type Fit,
  fitPayload,
  fitSchema,
  joinPath,
  type PayloadShape,
  type Upgrade,
} from "./fit-payload.ts";

/** How one item of a batch ended: a plain result, a result of `Promise.allSettled`, or a promise. */
export type ItemResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: unknown }
  | PromiseSettledResult<unknown>
  | Promise<unknown>;

/** Without guards: they would drop items. */
interface BatchTaskParts<Item> extends Omit<DefinedDefaults<readonly Item[]>, "debounce" | "throttle" | "singleton"> {
  /** The task's name. A task file must have the same. */
  readonly identifier: string;
  /**
   * Does the work of all items. If it returns nothing, all are done. If it returns one result per item, in order, the failed ones are
   * retried without the others. If it throws, all are retried.
   */
  readonly run: (items: readonly Item[], helpers: TaskHelpers) => PromiseOrDirect<void | readonly ItemResult[]>;
}

/** A batch task whose items a validator checks. */
export interface BatchTaskOptions<Schema extends StandardSchema, Olds extends readonly unknown[]>
  extends BatchTaskParts<OutputOf<Schema>> {
  /** A validator for one item. */
  readonly item: Schema;
  /** How items of older versions become items of this one, oldest first; as for `defineTask`. */
  readonly upgrade?: { readonly [Index in keyof Olds]: Upgrade<Olds[Index]> };
}

/** A batch task whose items only the compiler checks. */
export interface UncheckedBatchTaskOptions<Item> extends BatchTaskParts<Item> {
  readonly item?: never;
  readonly upgrade?: never;
}

/**
 * Defines a task whose payload is an array and whose items succeed or fail one by one. Jobs added with the same key become one job with the
 * items of both. An item that the validator rejects fails alone. A `run` that returns a different number of results than it got
 * items fails as a whole.
 */
export function defineBatchTask<Schema extends StandardSchema, Olds extends readonly unknown[]>(
  options: BatchTaskOptions<Schema, Olds>,
): TaskDefinition<readonly InputOf<Schema>[], readonly OutputOf<Schema>[]>;
export function defineBatchTask<Item = unknown>(
  options: UncheckedBatchTaskOptions<Item>,
): TaskDefinition<readonly Item[]>;
export function defineBatchTask(
  options: BatchTaskParts<never> & { readonly item?: StandardSchema; readonly upgrade?: readonly AnyUpgrade[] },
): TaskDefinition {
  const { identifier, item: schema, upgrade: upgrades = [], run } = options;
  const shape: PayloadShape = { schema, upgrades };
  return makeDefinition({
    options,
    validator: schema,
    takesBatches: true,
    fitNew: async (payload) => fitBatch(payload, (item) => fitSchema(schema, item)),
    check: async (payload) => (await fitBatch(payload, (item) => fitPayload(shape, item))).issues ?? [],
    async task(payload, helpers) {
      if (!isBatch(payload)) throw new PayloadError(identifier, notABatch);
      const fits = await fitItems(payload, (item) => fitPayload(shape, item));
      const good = fits.flatMap((fit) => (fit.issues ? [] : [fit.value]));
      const results = good.length > 0 ? await run(good as never[], helpers as TaskHelpers) : [];
      if (results === undefined && good.length === fits.length) return;
      const ends = endsOf(results ?? good.map(() => ({ ok: true })), good.length, identifier);
      let next = 0;
      return fits.map((fit) => (fit.issues ? failedWith(new PayloadError(identifier, fit.issues)) : ends[next++]));
    },
  });
}

const notABatch: readonly PayloadIssue[] = [{ path: "", message: "It must be an array with at least one item" }];

type FitItem = (item: unknown) => Promise<Fit>;

function isBatch(payload: unknown): payload is readonly unknown[] {
  return Array.isArray(payload) && payload.length > 0;
}

async function fitBatch(payload: unknown, fitItem: FitItem): Promise<Fit> {
  if (!isBatch(payload)) return { issues: notABatch };
  const fits = await fitItems(payload, fitItem);
  const issues = fits.flatMap((fit) => fit.issues ?? []);
  return issues.length > 0 ? { issues } : { value: fits.map((fit) => (fit.issues ? undefined : fit.value)) };
}

async function fitItems(items: readonly unknown[], fitItem: FitItem): Promise<readonly Fit[]> {
  // An upgrade that throws must not take the other items with it.
  const fits = await Promise.all(
    items.map((item) =>
      fitItem(item).catch((thrown: unknown): Fit => ({ issues: [{ path: "", message: toError(thrown).message }] })),
    ),
  );
  return fits.map((fit, index) => (fit.issues ? { issues: fit.issues.map((issue) => inItem(index, issue)) } : fit));
}

function inItem(index: number, { path, message }: PayloadIssue): PayloadIssue {
  const separator = path === "" || path.startsWith("[") ? "" : ".";
  return { path: `${joinPath([index])}${separator}${path}`, message };
}

function endsOf(results: readonly ItemResult[], items: number, identifier: string): Promise<unknown>[] {
  if (!Array.isArray(results) || results.length !== items) {
    const got = Array.isArray(results) ? `${results.length} results` : typeof results;
    for (const result of Array.isArray(results) ? results : []) Promise.resolve(result).catch(() => undefined);
    throw new Error(
      `Task '${identifier}' must return nothing, or one result for each of its ${items} items, got ${got}.`,
    );
  }
  return results.map((result) => {
    const end = Promise.resolve(result).then(rejectIfFailed);
    // Whoever runs the task awaits it, but perhaps not at once.
    end.catch(() => undefined);
    return end;
  });
}

function rejectIfFailed(result: unknown): unknown {
  if (result instanceof Error) throw result;
  if (typeof result !== "object" || result === null) return undefined;
  // Other things have an `ok` too, such as the answer of a fetch.
  if ("ok" in result && result.ok === false && "error" in result) throw toError(result.error);
  if ("status" in result && result.status === "rejected" && "reason" in result) throw toError(result.reason);
  return undefined;
}

function failedWith(error: Error): Promise<never> {
  const end = Promise.reject(error);
  end.catch(() => undefined);
  return end;
}
