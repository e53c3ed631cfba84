import { inspect } from "node:util";
import { JobSpecError } from "./errors.ts";

/*
 * What a value that people hand us for a job must look like; a value that the database could not take is refused with a sentence.
 */

export const smallest = -32_768;
const largest = 32_767;

/** Null and undefined are no value; zero and the empty text are. */
export function optional<T>(value: unknown, check: (value: unknown) => T): T | null {
  return value === undefined || value === null ? null : check(value);
}

export function checkInteger(name: string, value: unknown, min: number, max = largest): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new JobSpecError(`'${name}' must be a whole number from ${min} to ${max}, got ${inspect(value)}.`);
}

/** PostgreSQL counts characters, and can hold any but NUL. */
export function checkText(name: string, value: unknown, max: number): string {
  if (typeof value !== "string" || value === "" || value.includes("\0")) {
    throw new JobSpecError(`'${name}' must be a text of 1 to ${max} characters (without NUL), got ${inspect(value)}.`);
  }
  const length = value.length > max ? [...value].length : value.length;
  if (length <= max) return value;
  throw new JobSpecError(
    `'${name}' must have at most ${max} characters, got ${length} (starting with ${inspect(value.slice(0, 20))}).`,
  );
}

/** ISO 8601, which PostgreSQL reads for the years 1 to 9999. */
export function checkMoment(name: string, value: unknown): string {
  if (value instanceof Date) {
    const year = value.getUTCFullYear();
    if (year >= 1 && year <= 9_999) return value.toISOString();
  }
  throw new JobSpecError(`'${name}' must be a valid Date between the years 1 and 9999, got ${inspect(value)}.`);
}
