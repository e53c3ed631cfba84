import { inspect } from "node:util";
import { ConfigError } from "./errors.ts";
import { suggestion } from "./util/nearest.ts";
import { parseSpan } from "./util/time-span.ts";
import { expectWholeNumber } from "./util/whole-number.ts";

/** Where a value is in the payload: `"tenantId"`, `"customer.id"`, or the names one by one: `["customer", "id"]`. */
export type PayloadPath = string | readonly string[];

/** How many jobs may run at once, in all processes together. */
export interface ConcurrencyLimit {
  /** For all jobs, or for each key. May be left out with `fair: true`. */
  readonly limit?: number;
  /** Part of the payload: jobs with equal values share a limit of their own, and the keys take turns. */
  readonly key?: PayloadPath;
  /** How many jobs a key may start in its turn, 1 to 1000, or where that number is in the payload; 1, if left out. */
  readonly weight?: number | PayloadPath;
  /** True, instead of `limit`: the keys take turns and have no limit. */
  readonly fair?: true;
}

/** How many jobs may start in a length of time, in all processes together. Jobs beyond it wait; none is dropped. */
export interface RateLimit {
  readonly limit: number;
  /** From 100 ms up: milliseconds, or a string such as `"1m"`. */
  readonly period: number | string;
  /** How many jobs may start at once after a rest, beyond the even pace; 0, if left out. */
  readonly burst?: number;
  /** Part of the payload: jobs with equal values share a limit of their own, and the keys take turns. */
  readonly key?: PayloadPath;
  /** How many jobs a key may start in its turn, 1 to 1000, or where that number is in the payload; 1, if left out. */
  readonly weight?: number | PayloadPath;
  /** How many tokens a job uses, or where that number is in the payload; 1, if left out. */
  readonly cost?: number | PayloadPath;
}

/** Keys that take turns without a limit. */
export type Fairness = PayloadPath | { readonly key: PayloadPath; readonly weight?: number | PayloadPath };

/** A limit that several tasks share. */
export interface SharedLimit {
  readonly concurrency?: number | ConcurrencyLimit | readonly ConcurrencyLimit[];
  readonly rateLimit?: RateLimit | readonly RateLimit[];
}

/** A limit, read once. */
export interface LimitDefinition {
  readonly kind: "concurrency" | "rate" | "fair";
  /** Empty for a limit on everything. */
  readonly path: readonly string[];
  readonly places: number | null;
  readonly periodMs: number | null;
  readonly burst: number;
  readonly weight: number;
  readonly weightPath: readonly string[] | null;
  readonly cost: number;
  readonly costPath: readonly string[] | null;
}

const plain = {
  path: [],
  places: null,
  periodMs: null,
  burst: 0,
  weight: 1,
  weightPath: null,
  cost: 1,
  costPath: null,
};
const largest = 1_000_000;

/** A number, one limit, or several: `5`, `{ limit: 2, key: "tenantId" }`, `[{ limit: 50 }, { limit: 2, key: "tenantId" }]`. */
export function readConcurrency(value: unknown, name: string): readonly LimitDefinition[] {
  const given = typeof value === "number" ? [{ limit: value }] : listOf(value);
  return distinct(
    given.map((one) => readOneConcurrency(one, name)),
    name,
  );
}

function readOneConcurrency(value: unknown, name: string): LimitDefinition {
  const { limit, key, weight, fair } = readObject(value, name, ["limit", "key", "weight", "fair"]);
  const turns = { ...readKey(key, name), ...readNumberOrPath("weight", weight, name, 1_000) };
  if (fair !== undefined && fair !== true) throw wrong(`${name}.fair`, "true, or left out", fair);
  if (fair && limit === undefined) {
    if (turns.path.length === 0) throw wrong(`${name}.key`, "a path into the payload, since keys take turns", key);
    return { ...plain, ...turns, kind: "fair" };
  }
  return { ...plain, ...turns, kind: "concurrency", places: readCount(limit, `${name}.limit`, 0) };
}

export function readRateLimit(value: unknown, name: string): readonly LimitDefinition[] {
  return distinct(
    listOf(value).map((one) => readOneRate(one, name)),
    name,
  );
}

function readOneRate(value: unknown, name: string): LimitDefinition {
  const given = readObject(value, name, ["limit", "period", "burst", "key", "weight", "cost"]);
  const { period } = given;
  const periodMs = typeof period === "string" ? parseSpan(period) : period;
  if (typeof periodMs !== "number" || !(periodMs >= 100 && periodMs <= 366 * 86_400_000)) {
    throw wrong(`${name}.period`, "a length of time from 100 ms to a year, such as 1000 or '1m'", period);
  }
  return {
    ...plain,
    ...readKey(given["key"], name),
    ...readNumberOrPath("weight", given["weight"], name, 1_000),
    ...readNumberOrPath("cost", given["cost"], name, largest),
    kind: "rate",
    places: readCount(given["limit"], `${name}.limit`, 0),
    burst: given["burst"] === undefined ? 0 : readCount(given["burst"], `${name}.burst`, 0),
    periodMs,
  };
}

export function readFairness(value: unknown, name: string): readonly LimitDefinition[] {
  const isPath = typeof value === "string" || Array.isArray(value);
  const { key, weight } = isPath ? { key: value, weight: undefined } : readObject(value, name, ["key", "weight"]);
  if (key === undefined) throw wrong(`${name}.key`, "a path into the payload such as 'tenantId'", key);
  return [{ ...plain, ...readKey(key, name), ...readNumberOrPath("weight", weight, name, 1_000), kind: "fair" }];
}

/** The names of shared limits that a task obeys. */
export function readLimitNames(value: unknown, name: string): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "")) return [...new Set(value)];
  throw wrong(name, "an array of names from the option 'limits'", value);
}

/** The option `limits`: shared limits by name. */
export function readSharedLimits(
  value: unknown,
  name: string,
): { readonly [limit: string]: readonly LimitDefinition[] } {
  const given = readObject(value, name);
  return Object.fromEntries(
    Object.entries(given).map(([limit, one]) => {
      const where = `${name}['${limit}']`;
      if (limit === "" || limit.length > 128) throw wrong(where, "named with 1 to 128 characters", limit);
      const { concurrency, rateLimit } = readObject(one, where, ["concurrency", "rateLimit"]);
      const read = [
        ...(concurrency === undefined ? [] : readConcurrency(concurrency, `${where}.concurrency`)),
        ...(rateLimit === undefined ? [] : readRateLimit(rateLimit, `${where}.rateLimit`)),
      ];
      if (read.length === 0) throw wrong(where, "an object with 'concurrency' or 'rateLimit'", one);
      return [limit, read];
    }),
  );
}

/** `tenantId`, `customer.id`: as users write it. */
export function formatPath(path: readonly string[]): string {
  return path.join(".");
}

export function readPath(value: unknown, name: string): readonly string[] {
  const path = typeof value === "string" ? value.split(".") : value;
  const isPath =
    Array.isArray(path) && path.length > 0 && path.every((step) => typeof step === "string" && step !== "");
  // What an index could not be built for.
  if (isPath && JSON.stringify(path).length <= 1_000 && !path.join("").includes("\0")) return path;
  throw wrong(name, "a path into the payload such as 'tenantId' or 'customer.id'", value);
}

function readKey(value: unknown, name: string): Pick<LimitDefinition, "path"> {
  return { path: value === undefined ? [] : readPath(value, `${name}.key`) };
}

function readNumberOrPath(what: "weight" | "cost", value: unknown, name: string, most: number): object {
  if (value === undefined) return {};
  if (typeof value === "number") return { [what]: readCount(value, `${name}.${what}`, 1, most) };
  return { [`${what}Path`]: readPath(value, `${name}.${what}`) };
}

function readCount(value: unknown, name: string, least: number, most = largest): number {
  const expected = expectWholeNumber(value, least, most);
  if (expected) throw wrong(name, expected, value);
  return value as number;
}

function readObject(value: unknown, name: string, keys?: readonly string[]): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(name, "an object", value);
  for (const key of keys ? Object.keys(value) : []) {
    if (!keys!.includes(key)) throw new ConfigError(`Unknown key '${key}' in '${name}'.${suggestion(key, keys!)}`);
  }
  return value as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function distinct(limits: readonly LimitDefinition[], name: string): readonly LimitDefinition[] {
  const paths = limits.map(({ kind, path }) => JSON.stringify([kind, path]));
  const twice = paths.findIndex((path, index) => paths.indexOf(path) !== index);
  if (twice < 0) return limits;
  const { path } = limits[twice]!;
  throw new ConfigError(
    `'${name}' has two limits ${path.length > 0 ? `with the key '${formatPath(path)}'` : "without a key"}: keep the smaller one.`,
  );
}

function wrong(name: string, what: string, value: unknown): ConfigError {
  return new ConfigError(`'${name}' must be ${what}, got ${inspect(value, { depth: 1 })}.`);
}
