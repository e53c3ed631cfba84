import type { PromiseOrDirect } from "../task.ts";
import type { PayloadIssue, StandardIssue, StandardSchema } from "../task-definition.ts";

/**
 * A step from an older payload to the next one: `from` says what the old one looked like, `to` makes the newer one of it.
 */
export interface Upgrade<Old = unknown> {
  readonly from: StandardSchema<unknown, Old>;
  readonly to: (old: Old) => PromiseOrDirect<unknown>;
}

export interface AnyUpgrade {
  readonly from: StandardSchema;
  readonly to: (old: never) => PromiseOrDirect<unknown>;
}

/** What a payload must look like, and the older looks it may have, oldest first. */
export interface PayloadShape {
  /** Undefined: anything fits. */
  readonly schema: StandardSchema | undefined;
  readonly upgrades: readonly AnyUpgrade[];
}

export type Fit =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly PayloadIssue[] };

/**
 * Fits a payload that comes from the database. The scheduler puts `_cron` into those of recurring jobs: a validator may ask for
 * it, and one that takes nothing it does not know is spared it.
 */
export async function fitPayload(shape: PayloadShape, payload: unknown): Promise<Fit> {
  const fit = await upgradePayload(shape, payload);
  if (!fit.issues || typeof payload !== "object" || payload === null || !("_cron" in payload)) return fit;
  const { _cron, ...rest } = payload;
  return await upgradePayload(shape, rest);
}

/**
 * Fits a payload into the newest shape. One that does not fit as it is may be of an older version: the newest old shape that
 * it fits is where its way up begins, and every step after that is taken. What comes out must fit, too.
 */
async function upgradePayload({ schema, upgrades }: PayloadShape, payload: unknown): Promise<Fit> {
  const current = await fitSchema(schema, payload);
  if (!current.issues) return current;
  for (let first = upgrades.length - 1; first >= 0; first--) {
    const old = await fitSchema(upgrades[first]!.from, payload);
    if (old.issues) continue;
    let fit: Fit = old;
    for (let step = first; step < upgrades.length && !fit.issues; step++) {
      const newer = await upgrades[step]!.to(fit.value as never);
      fit = await fitSchema(upgrades[step + 1]?.from ?? schema, newer);
    }
    return fit;
  }
  return current;
}

export async function fitSchema(schema: StandardSchema | undefined, payload: unknown): Promise<Fit> {
  if (!schema) return { value: payload };
  const result = await schema["~standard"].validate(payload);
  return result.issues ? { issues: result.issues.map(toIssue) } : { value: result.value };
}

function toIssue({ message, path = [] }: StandardIssue): PayloadIssue {
  return { message, path: joinPath(path.map((part) => (typeof part === "object" ? part.key : part))) };
}

/** `["items", 2, "id"]` as one would write it: `items[2].id`. */
export function joinPath(keys: readonly PropertyKey[]): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    const text = String(key);
    if (/^[A-Za-z_$][\w$]*$/.test(text)) return path === "" ? text : `${path}.${text}`;
    return `${path}[${JSON.stringify(text)}]`;
  }, "");
}
