import { inspect } from "node:util";
import { JobSpecError } from "./errors.ts";
import { expectWholeNumber } from "./util/whole-number.ts";

/*
 * What a value that people hand us for a job must look like; a value that the database could not take is refused with a sentence.
 */

export const smallest = -32_768;
const largest = 32_767;

/** Null and undefined are no value; zero and the empty string are. */
export function optional<T>(value: unknown, check: (value: unknown) => T): T | null {
  return value === undefined || value === null ? null : check(value);
}

export function checkInteger(name: string, value: unknown, min: number, max = largest): number {
  const number = typeof value === "string" && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value;
  const expected = expectWholeNumber(number, min, max);
  if (expected) throw new JobSpecError(`'${name}' must be ${expected}, got ${inspect(value)}.`);
  return number as number;
}

/** A name that may be a number in the caller's code, such as a customer's id; the database holds it as text. */
export function checkName(name: string, value: unknown, max: number): string {
  const isNumber = typeof value === "bigint" || (typeof value === "number" && Number.isFinite(value));
  return checkText(name, isNumber ? String(value) : value, max);
}

/** PostgreSQL counts characters, and can hold any but NUL. */
export function checkText(name: string, value: unknown, max: number): string {
  if (typeof value !== "string" || value === "" || value.includes("\0")) {
    throw new JobSpecError(
      `'${name}' must be a string of 1 to ${max} characters (without NUL), got ${inspect(value)}.`,
    );
  }
  const length = value.length > max ? [...value].length : value.length;
  if (length <= max) return value;
  throw new JobSpecError(
    `'${name}' must have at most ${max} characters, got ${length} (starting with ${inspect(value.slice(0, 20))}).`,
  );
}

/** ISO 8601, which PostgreSQL reads for the years 1 to 9999. Dates of other libraries (dayjs, moment) can say it of themselves. */
export function checkMoment(name: string, value: unknown): string {
  const date = toDate(value);
  const year = date?.getUTCFullYear() ?? Number.NaN;
  if (date && year >= 1 && year <= 9_999) return date.toISOString();
  throw new JobSpecError(`'${name}' must be a valid Date between the years 1 and 9999, got ${inspect(value)}.`);
}

function toDate(value: unknown): Date | undefined {
  if (value instanceof Date) return value;
  const { toISOString } = (typeof value === "object" && value !== null ? value : {}) as { toISOString?: unknown };
  if (typeof toISOString !== "function") return undefined;
  try {
    return new Date(String(toISOString.call(value)));
  } catch {
    return undefined; // an invalid date of dayjs throws here
  }
}

/** The id of a job. PostgreSQL counts up to 2^63, so we give out strings; numbers are taken too. */
export type JobId = string | number | bigint;

const largestId = 2n ** 63n - 1n;

export function checkJobId(id: JobId): string {
  const text = String(id);
  if (/^\d{1,19}$/.test(text) && BigInt(text) <= largestId) return text;
  throw new JobSpecError(`A job id must be a whole number such as '42', got ${inspect(id)}.`);
}

export function checkJobIds(ids: readonly JobId[]): string[] {
  if (!Array.isArray(ids)) throw new JobSpecError(`Job ids must be an array, got ${inspect(ids)}.`);
  return ids.map(checkJobId);
}
