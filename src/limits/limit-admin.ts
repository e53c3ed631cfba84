import { inspect } from "node:util";
import type { Database } from "../db/database.ts";
import { isRefused } from "../db/sqlstate.ts";
import { listWaitingKeys } from "../db/statements/limit-keys.ts";
import { clearLimit, type LimitRow, listLimits, type SetLimitParams, setLimit } from "../db/statements/set-limits.ts";
import { JobSpecError } from "../errors.ts";
import { checkInteger } from "../job-checks.ts";
import { formatPath, type PayloadPath, readPath } from "../limit-options.ts";
import { suggestion } from "../util/nearest.ts";
import { parseSpan } from "../util/time-span.ts";
import { expectWholeNumber } from "../util/whole-number.ts";

/** Which of the limits with a name is meant, where there are several. */
export interface LimitTarget {
  /** The value whose limit is changed; the limit itself, if left out. */
  readonly key?: string | number;
  readonly kind?: "concurrency" | "rate" | "fair";
  /** The key's place in the payload, as the limit's definition has it. */
  readonly path?: PayloadPath;
}

export interface LimitChange extends LimitTarget {
  /** How many jobs may run at once, or start in a period; 0 stops them. */
  readonly limit?: number;
  readonly period?: number | string;
  readonly burst?: number;
  /** How many jobs the key may start in its turn. */
  readonly weight?: number;
}

/** A limit that is in force. */
export interface Limit {
  /** Of the task, or of the shared limit. */
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly isShared: boolean;
  /** The key's place in the payload; null for a limit on everything. */
  readonly key: string | null;
  /** The same, step by step; empty for a limit on everything. */
  readonly path: readonly string[];
  /** With what was set at run time; null if keys only take turns. */
  readonly limit: number | null;
  /** As code defines it. */
  readonly definedLimit: number | null;
  readonly periodMs: number | null;
  readonly burst: number;
  readonly weight: number;
  readonly tasks: readonly string[];
  /** Jobs of these tasks that are locked, and those that are due and wait; counting stops at 10,001. */
  readonly running: number;
  readonly waiting: number;
  /** Made by `setLimit`, not in code. */
  readonly isSetAtRunTime: boolean;
  /** `setLimit` changed it as a whole, and `clearLimit` takes that back. */
  readonly isChanged: boolean;
  readonly declaredAt: Date;
  readonly declaredBy: string | null;
  readonly overrides: readonly LimitOverride[];
  readonly holds: readonly LimitHold[];
}

/** What was set for one key; null leaves the limit's own value. */
export interface LimitOverride {
  readonly key: string;
  readonly limit: number | null;
  readonly periodMs: number | null;
  readonly burst: number | null;
  readonly weight: number | null;
}

/** What a `RateLimitError` holds back. */
export interface LimitHold {
  /** Null: the whole limit. */
  readonly key: string | null;
  readonly until: Date;
  readonly reason: string | null;
}

/** Changes limits in all processes, and lists them. */
export interface LimitAdmin {
  /** Changes a limit, or the limit of one key, until it is cleared. A task without a limit gets one. Acts within about a second. */
  setLimit(name: string, change: LimitChange): Promise<void>;
  /** Takes back what `setLimit` changed; returns false if there was nothing. */
  clearLimit(name: string, target?: LimitTarget): Promise<boolean>;
  /** Lists the limits in force, with what was set at run time. */
  listLimits(options?: ListLimitsOptions): Promise<Limit[]>;
  /** Lists the keys that wait at each limit with a key, those with the most jobs first, among the jobs that come next. */
  listWaitingKeys(options?: WaitingKeysOptions): Promise<WaitingKeys[]>;
}

export interface ListLimitsOptions {
  /** False: `running` and `waiting` are 0, for callers that know them from `getJobFigures`. Default true. */
  readonly countJobs?: boolean | undefined;
}

export interface WaitingKeysOptions {
  /** Jobs to look at for each limit, in the order in which they are claimed; 2,000 if left out. */
  readonly lookAt?: number | undefined;
  /** Keys to return for each limit; 10 if left out. */
  readonly keys?: number | undefined;
}

/** Who waits at a limit. */
export interface WaitingKeys extends Pick<Limit, "name" | "kind" | "isShared" | "path"> {
  readonly keys: readonly { readonly key: string; readonly jobs: number }[];
  /** Jobs that were looked at; there may be more. */
  readonly lookedAt: number;
}

/** The keys of more limits than these would be too much for one page. */
const mostLimits = 50;

export function makeLimitAdmin(database: Pick<Database, "run">): LimitAdmin {
  return {
    async setLimit(name, change) {
      const target = readTarget(name, change, [...targetNames, ...valueNames]);
      const { limit, period, burst, weight } = change;
      if (valueNames.every((value) => change[value] === undefined)) {
        throw new JobSpecError(`Say what to set: ${valueNames.join(", ")}; got ${inspect(change)}.`);
      }
      const values = {
        places: readWhole("limit", limit, 0, 1_000_000),
        burst: readWhole("burst", burst, 0, 1_000_000),
        weight: readWhole("weight", weight, 1, 1_000),
        periodMs: readPeriod(period),
      };
      await database.run(setLimit, { ...target, ...values }).catch(explain);
    },
    async clearLimit(name, target = {}) {
      const [row] = await database.run(clearLimit, readTarget(name, target, targetNames)).catch(explain);
      return row!.cleared;
    },
    async listLimits({ countJobs = true } = {}) {
      return (await database.run(listLimits, { countJobs })).map(toLimit);
    },
    async listWaitingKeys({ lookAt = 2_000, keys = 10 } = {}) {
      const rows = await database.run(listWaitingKeys, {
        lookAt: checkInteger("lookAt", lookAt, 1, 100_000),
        keys: checkInteger("keys", keys, 1, 1_000),
        limits: mostLimits,
      });
      return rows.map(({ scope, name, kind, path, looked_at, keys: found }) => ({
        name,
        kind,
        isShared: scope === "shared",
        path,
        keys: found,
        lookedAt: looked_at,
      }));
    },
  };
}

/** What the functions of the database refuse, they explain. */
function explain(error: unknown): never {
  throw isRefused(error) ? new JobSpecError((error as Error).message, { cause: error }) : error;
}

const targetNames = ["key", "kind", "path"] as const;
const valueNames = ["limit", "period", "burst", "weight"] as const;
const kinds = ["concurrency", "rate", "fair"];

function readTarget(
  name: string,
  target: LimitTarget,
  known: readonly string[],
): Pick<SetLimitParams, "name" | "key" | "kind" | "path"> {
  if (typeof name !== "string" || name === "") {
    throw new JobSpecError(`Name the task or the shared limit, got ${inspect(name)}.`);
  }
  for (const given of Object.keys(target)) {
    if (!known.includes(given)) {
      throw new JobSpecError(`Unknown option '${given}' of a limit.${suggestion(given, known)}`);
    }
  }
  const { key, kind, path } = target;
  if (key !== undefined && typeof key !== "string" && typeof key !== "number") {
    throw new JobSpecError(`'key' must be a string or a number, got ${inspect(key)}.`);
  }
  if (typeof key === "string" && key.includes("\0")) {
    throw new JobSpecError(`'key' must not contain \\u0000, which PostgreSQL cannot store, got ${inspect(key)}.`);
  }
  if (kind !== undefined && !kinds.includes(kind)) {
    throw new JobSpecError(`'kind' must be concurrency, rate or fair, got ${inspect(kind)}.`);
  }
  return {
    name,
    key: key === undefined ? null : String(key),
    kind: kind ?? null,
    path: path === undefined ? null : readPath(path, "path"),
  };
}

function readWhole(what: string, value: number | undefined, least: number, most: number): number | null {
  if (value === undefined) return null;
  const expected = expectWholeNumber(value, least, most);
  if (expected) throw new JobSpecError(`'${what}' must be ${expected}, got ${inspect(value)}.`);
  return value;
}

function readPeriod(value: number | string | undefined): number | null {
  if (value === undefined) return null;
  const ms = typeof value === "string" ? parseSpan(value) : value;
  if (typeof ms === "number" && ms >= 100 && Number.isFinite(ms)) return ms;
  throw new JobSpecError(`'period' must be a length of time from 100 ms up, such as '1m', got ${inspect(value)}.`);
}

function toLimit(row: LimitRow): Limit {
  return {
    name: row.name,
    kind: row.kind,
    isShared: row.scope === "shared",
    key: row.path.length > 0 ? formatPath(row.path) : null,
    path: row.path,
    limit: row.places,
    definedLimit: row.origin === "set" ? null : row.defined,
    periodMs: row.period_ms,
    burst: row.burst,
    weight: row.weight,
    tasks: row.tasks,
    running: row.running,
    waiting: row.waiting,
    isSetAtRunTime: row.origin === "set",
    isChanged: row.is_changed,
    declaredAt: row.declared_at,
    declaredBy: row.declared_by,
    overrides: (row.overrides ?? []).map(({ places, ...override }) => ({ ...override, limit: places })),
    holds: (row.holds ?? []).map(({ key, until, reason }) => ({ key, until: new Date(until), reason })),
  };
}
