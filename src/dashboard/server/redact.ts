import { redactedText } from "../contract.ts";

/*
 * As the database redacts what it keeps (`_hathi_redact`): patterns are keys with dots between them, `*` stands for any one key or index, `**` for any
 * number of them.
 */

/** What is hidden unless the options say otherwise. */
export const defaultRedact: readonly string[] = [
  "**.password",
  "**.secret",
  "**.token",
  "**.apiKey",
  "**.api_key",
  "**.authorization",
];

/** A copy in which everything that the patterns name is replaced. */
export function redact(value: unknown, patterns: readonly string[]): unknown {
  return replace(value, patterns, () => redactedText);
}

/** Puts back what was hidden: where `edited` has the mark at a place that was hidden in the original, the original's value. */
export function restore(edited: unknown, original: unknown, patterns: readonly string[]): unknown {
  return replace(edited, patterns, (value, path) => (value === redactedText ? valueAt(original, path) : value));
}

/** What was put back, as text: a sentence about the payload may not contain it. */
export function restoredTexts(edited: unknown, whole: unknown): string[] {
  if (edited === redactedText) return leavesOf(whole);
  if (typeof edited !== "object" || edited === null) return [];
  return Object.entries(edited).flatMap(([key, value]) => restoredTexts(value, valueAt(whole, [key])));
}

function leavesOf(value: unknown): string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(leavesOf);
  if (typeof value === "string") return value === "" ? [] : [value];
  return typeof value === "number" || typeof value === "boolean" ? [String(value)] : [];
}

/** True if some value is the mark. */
export function hasRedacted(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === redactedText;
  return Object.values(value).some(hasRedacted);
}

/** The key of a limit, which is what stands at this place in payloads. That a job has none is no secret. */
export function redactKey(key: string, path: Path, patterns: readonly string[]): string {
  if (key === "" || path.length === 0) return key;
  const value = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), key);
  const isShown = valueAt(redact(value, patterns), path) === key;
  // A key that is an object or a list, perhaps shortened, may contain hidden values.
  const isWhole = /^[[{]/.test(key) && patterns.length > 0;
  return isShown && !isWhole ? key : redactedText;
}

type Path = readonly string[];

function replace(
  value: unknown,
  patterns: readonly string[],
  by: (value: unknown, path: Path) => unknown,
  path: Path = [],
): unknown {
  if (patterns.length === 0 || typeof value !== "object" || value === null) return value;
  const member = (key: string, inner: unknown): unknown => {
    const below: string[] = [];
    for (const pattern of patterns) {
      const isDeep = pattern.startsWith("**.");
      if (isDeep) below.push(pattern);
      const [head = "", ...rest] = (isDeep ? pattern.slice(3) : pattern).split(".");
      if (head !== key && head !== "*") continue;
      if (rest.length === 0) return by(inner, [...path, key]);
      below.push(rest.join("."));
    }
    return replace(inner, below, by, [...path, key]);
  };
  if (Array.isArray(value)) return value.map((item, index) => member(String(index), item));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, member(key, inner)]));
}

function valueAt(value: unknown, path: Path): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return redactedText;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}
