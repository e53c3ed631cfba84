import { inspect } from "node:util";
import { ConfigError } from "../errors.ts";

/** Says no with a sentence: what must hold, and what was given. */
type Check = (value: unknown, name: string) => void;

function must(requirement: string, holds: (value: unknown) => boolean): Check {
  return (value, name) => {
    if (!holds(value)) throw new ConfigError(`'${name}' must be ${requirement}, got ${inspect(value, { depth: 1 })}.`);
  };
}

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

export const aText = must("a text that is not empty", (value) => typeof value === "string" && value !== "");
export const texts = must("an array of texts", isTexts);
export const aBoolean = must("true or false", (value) => typeof value === "boolean");
export const anObject = must("an object", (value) => typeof value === "object" && value !== null);
export const aNumber = must("a finite number", isNumber);
export const aCount = must("a whole number from 1 up", (value) => Number.isSafeInteger(value) && Number(value) >= 1);
export const aFactor = must("a number from 1 up", (value) => isNumber(value) && value >= 1);
export const aDelay = must("a number of milliseconds from 0 up", (value) => isNumber(value) && value >= 0);
export const anInterval = must("a number of milliseconds from 1 up", (value) => isNumber(value) && value >= 1);

/** PostgreSQL cuts longer names off, and two schemas could become one. */
export const aSchemaName = must("a name of 1 to 63 bytes", (value) => {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 63 && !value.includes("\0");
});

export const aTimeZone = must("a time zone such as 'Europe/Berlin'", (value) => {
  // The default: asking costs 20 ms and 8 MB, which most workers never need again.
  if (value === "UTC") return true;
  try {
    return typeof value === "string" && Intl.DateTimeFormat("en", { timeZone: value }) !== undefined;
  } catch {
    return false;
  }
});

export const extensions = must("an array of file extensions such as '.js'", (value) => {
  return isTexts(value) && value.every((extension) => extension.startsWith("."));
});

/** Checks every key that has a check and a value. */
export function checkAll(values: object, checks: Readonly<Record<string, Check>>, prefix = ""): void {
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined) checks[key]?.(value, prefix + key);
  }
}
