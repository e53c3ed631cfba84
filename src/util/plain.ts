import { clip } from "./clip.ts";

/** Strings in log lines and error texts are cut to this many bytes. */
const maxStringBytes = 8_192;
const maxKeyBytes = 256;
const maxEntries = 50;
const maxDepth = 5;
/** Values in one result, so that neither a wide nor a deep one grows without end. */
const maxValues = 500;

/** Stands in for a value before it is copied; undefined leaves the value as it is. */
export type Replace = (value: object, key: string) => { readonly by: unknown } | undefined;

interface Copying {
  readonly replace: Replace;
  readonly parents: Set<object>;
  left: number;
}

/** A property of something that may throw when it is looked at; undefined if it does. */
export function peek(value: unknown, key: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[key];
  } catch {
    return undefined;
  }
}

export function canRead(value: object, key: string): boolean {
  try {
    void (value as Record<string, unknown>)[key];
    return true;
  } catch {
    return false;
  }
}

/** A copy that JSON can hold, whatever the value is: bounded in depth and length, and made without throwing. */
export function toPlain(value: unknown, replace: Replace = () => undefined): unknown {
  return copy(value, "", { replace, parents: new Set(), left: maxValues });
}

function copy(value: unknown, key: string, copying: Copying): unknown {
  switch (typeof value) {
    case "string":
      return clip(value, maxStringBytes);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
    case "undefined":
      return value;
    case "bigint":
      return clip(String(value), maxStringBytes);
    case "symbol":
      return clip(value.toString(), maxStringBytes);
    case "function":
      return "[function]";
    case "object":
      return value === null ? null : copyObject(value, key, copying);
  }
}

function copyObject(value: object, key: string, copying: Copying): unknown {
  if (copying.parents.has(value)) return "[circular]";
  if (copying.parents.size >= maxDepth || copying.left <= 0) return "[…]";
  copying.parents.add(value);
  try {
    const replacement = copying.replace(value, key);
    if (replacement) return replacement.by;
    const toJson = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJson === "function") {
      const json: unknown = toJson.call(value, key);
      if (json !== value) return copy(json, key, copying);
    }
    return Array.isArray(value) ? copyArray(value, copying) : copyEntries(value, copying);
  } catch {
    return "[unreadable]"; // a revoked proxy, or a toJSON that throws
  } finally {
    copying.parents.delete(value);
  }
}

function copyArray(values: readonly unknown[], copying: Copying): unknown[] {
  const shown = Math.min(values.length, maxEntries, copying.left);
  copying.left -= shown;
  const copied = Array.from({ length: shown }, (_, index) => copy(values[index], String(index), copying));
  return shown < values.length ? [...copied, `[${values.length - shown} more]`] : copied;
}

function copyEntries(value: object, copying: Copying): object {
  const keys = Object.keys(value);
  const shown = keys.slice(0, Math.min(maxEntries, copying.left));
  copying.left -= shown.length;
  const entries = shown.map((key): [string, unknown] => [clip(key, maxKeyBytes), copyProperty(value, key, copying)]);
  if (shown.length < keys.length) entries.push(["…", `[${keys.length - shown.length} more]`]);
  return Object.fromEntries(entries);
}

function copyProperty(value: object, key: string, copying: Copying): unknown {
  let property: unknown;
  try {
    property = (value as Record<string, unknown>)[key];
  } catch {
    return "[unreadable]";
  }
  return copy(property, key, copying);
}
