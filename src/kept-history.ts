import { inspect } from "node:util";
import { ConfigError } from "./errors.ts";
import { suggestion } from "./util/nearest.ts";
import { parseSpan } from "./util/time-span.ts";

/** What is kept of finished jobs: nothing, how each attempt ended, or their payloads, too. */
export type HistoryLevel = "off" | "outcomes" | "full";

/** How long history is kept, in whole days (a string such as `"14d"`, or milliseconds; rounded up). */
export interface RetentionOptions {
  /** Of jobs that succeeded; a day, if left out. */
  readonly completed?: number | string;
  /** Of attempts that failed and of cancelled jobs; 14 days, if left out. */
  readonly failed?: number | string;
}

/** The same in days. */
export interface Retention {
  readonly completed: number;
  readonly failed: number;
}

/** What workers keep without the option; `hathi init` writes a config that says "outcomes". */
export const defaultHistory: HistoryLevel = "off";
export const defaultRetention: Retention = { completed: 1, failed: 14 };
export const defaultResultDays = 1;

/** What is kept of a task's jobs. */
export interface KeepRule {
  /** `none`: results only. */
  readonly keptAs: "none" | Exclude<HistoryLevel, "off">;
  readonly keepsResult: boolean;
  readonly completedDays: number;
  readonly failedDays: number;
  readonly resultDays: number;
}

/** What a pool keeps. */
export interface KeepRules {
  /** Of the jobs of this task; undefined for nothing. */
  readonly of: (task: string) => KeepRule | undefined;
  /** Which parts of payloads are not kept. */
  readonly redact: readonly string[];
  /** Resolves when there are partitions to write to, or after a moment without; undefined once that is so. */
  readonly opening: () => Promise<void> | undefined;
}

const levels: readonly HistoryLevel[] = ["off", "outcomes", "full"];
const dayMs = 86_400_000;
const mostDays = 36_500;

export function readHistoryLevel(value: unknown, name: string): HistoryLevel {
  const level = levels.find((known) => known === value);
  if (level) return level;
  const hint = typeof value === "string" ? suggestion(value, levels) : "";
  throw new ConfigError(`'${name}' must be 'off', 'outcomes' or 'full', got ${inspect(value)}.${hint}`);
}

/** Days, rounded up; what is not said stays undefined, so that a pool's retention can stand below a task's. */
export function readRetention(value: unknown, name: string): Partial<Retention> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ConfigError(
      `'${name}' must be an object such as { completed: "1d", failed: "14d" }, got ${inspect(value)}.`,
    );
  }
  const known = Object.keys(defaultRetention);
  const read: { completed?: number; failed?: number } = {};
  for (const [key, given] of Object.entries(value)) {
    if (!known.includes(key)) throw new ConfigError(`Unknown key '${key}' in '${name}'.${suggestion(key, known)}`);
    if (given !== undefined) read[key as keyof Retention] = readDays(given, `${name}.${key}`);
  }
  return read;
}

export function readDays(value: unknown, name: string): number {
  const ms = typeof value === "string" ? parseSpan(value) : value;
  const days = typeof ms === "number" ? Math.ceil(ms / dayMs) : Number.NaN;
  if (days >= 1 && days <= mostDays) return days;
  throw new ConfigError(
    `'${name}' must be a length of time of up to ${mostDays} days, such as '14d', or a number of milliseconds, got ${inspect(value)}.`,
  );
}
