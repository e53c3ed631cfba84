import { inspect } from "node:util";
import { ConfigError } from "./errors.ts";
import type { Job } from "./job.ts";
import {
  type HistoryLevel,
  type Retention,
  type RetentionOptions,
  readDays,
  readHistoryLevel,
  readRetention,
} from "./kept-history.ts";
import {
  type ConcurrencyLimit,
  type Fairness,
  type LimitDefinition,
  type RateLimit,
  readConcurrency,
  readFairness,
  readLimitNames,
  readRateLimit,
} from "./limit-options.ts";
import { suggestion } from "./util/nearest.ts";
import { parseSpan } from "./util/time-span.ts";
import { expectWholeNumber } from "./util/whole-number.ts";

/** A length of time: milliseconds, or a string such as `"30s"`. */
export type Duration = number | string;

/** How long a failed job rests before it is tried again. */
export interface BackoffOptions {
  /** `exponential`: `delay`, twice, four times…; `linear`: `delay`, two times, three times…; `fixed`: always `delay`. */
  readonly type: "exponential" | "linear" | "fixed";
  readonly delay: Duration;
  /** The longest rest. */
  readonly maxDelay?: Duration;
  /** A share of the rest, 0 to 1, by which it is shortened or prolonged at random, so that jobs do not come back together. */
  readonly jitter?: number;
}

/** Gives milliseconds (or a string such as `"30s"`) until the next attempt; `attempt` counts from 1. */
export type BackoffFunction = (attempt: number, error: Error, job: Job) => Duration;

/** How a task's jobs run. What stands in `taskOptions` goes before what the task itself says. */
export interface TaskRunOptions {
  /** How long a job may take; then its `abortSignal` fires. No limit, if left out. */
  readonly timeout?: Duration;
  /** How long a job has to end once its `abortSignal` has fired for a timeout; 5 seconds, if left out. Programs are killed then. */
  readonly abortGrace?: Duration;
  /** How long to wait before a failed job is tried again; Graphile Worker's formula, if left out. */
  readonly backoff?: BackoffOptions | BackoffFunction;
  /** How often a job may be put off with `SnoozeError`; beyond that it counts as failed. No limit, if left out. */
  readonly maxSnoozes?: number;
  /** How many overrunning jobs of this task may have their slot replaced by a new one; 0, if left out. */
  readonly replaceStuckSlots?: number;
  /** What is kept of the task's finished jobs; the option `history` decides, if left out. */
  readonly history?: HistoryLevel;
  /** How long that is kept; the option `retention` decides, if left out. */
  readonly retention?: RetentionOptions;
  /** True: what the task returns is kept as the job's result, of up to 1 MB as JSON. */
  readonly keepResult?: boolean;
  /** How long results are kept, in whole days; a day, if left out. */
  readonly resultRetention?: Duration;
  /** True: the task runs in a transaction, `helpers.tx`, that is committed together with the job's completion. */
  readonly transactional?: boolean;
  /** How long the server lets a transaction that completes a job stay open; 5 minutes, if left out. */
  readonly transactionTimeout?: Duration;
  /** How many of its jobs may run at once in all processes, as a whole or per key: `5`, `{ limit: 2, key: "tenantId" }`, or several. */
  readonly concurrency?: number | ConcurrencyLimit | readonly ConcurrencyLimit[];
  /** How many of its jobs may start in a length of time, as a whole or per key. Jobs beyond it wait. */
  readonly rateLimit?: RateLimit | readonly RateLimit[];
  /** Part of the payload, such as `"tenantId"`: its values take turns, without a limit. */
  readonly fair?: Fairness;
  /** Limits that it shares with other tasks: names from the option `limits`. */
  readonly limits?: readonly string[];
  /** How often a job is tried; for jobs that are added with the definition. */
  readonly maxAttempts?: number;
  /** For jobs that are added with the definition. */
  readonly priority?: number;
  /** For jobs that are added with the definition. */
  readonly queueName?: string;
}

/** The same, read once: durations in milliseconds. */
export interface TaskRunSettings
  extends Pick<TaskRunOptions, "maxAttempts" | "priority" | "queueName" | "history" | "keepResult" | "transactional"> {
  readonly timeout?: number;
  readonly abortGrace?: number;
  readonly backoff?: BackoffFunction;
  readonly maxSnoozes?: number;
  readonly replaceStuckSlots?: number;
  readonly transactionTimeout?: number;
  readonly retention?: Partial<Retention>;
  readonly concurrency?: readonly LimitDefinition[];
  readonly rateLimit?: readonly LimitDefinition[];
  readonly fair?: readonly LimitDefinition[];
  readonly limits?: readonly string[];
  /** In days. */
  readonly resultRetention?: number;
}

export const defaultAbortGraceMs = 5_000;

/** By name, too: several files may export the same function. */
const fileOptions = new WeakMap<object, Map<string, TaskRunSettings>>();

/** Remembers what the file of a task says about it. */
export function giveOptions(task: object, name: string, settings: TaskRunSettings): void {
  const byName = fileOptions.get(task) ?? new Map<string, TaskRunSettings>();
  fileOptions.set(task, byName.set(name, settings));
}

/** What the file of a task says about it. */
export function fileOptionsOf(task: object, name: string): TaskRunSettings | undefined {
  return fileOptions.get(task)?.get(name);
}

type Reader = (value: unknown, name: string) => unknown;

/** One line for each option: how it is read. */
const readers: { readonly [Key in keyof Required<TaskRunOptions>]: Reader } = {
  timeout: (value, name) => readDuration(value, name, 1),
  abortGrace: (value, name) => readDuration(value, name, 0),
  backoff: readBackoff,
  maxSnoozes: (value, name) => readInteger(value, name, 0),
  replaceStuckSlots: (value, name) => readInteger(value, name, 0),
  history: readHistoryLevel,
  retention: readRetention,
  keepResult: readBoolean,
  resultRetention: readDays,
  transactional: readBoolean,
  transactionTimeout: (value, name) => readDuration(value, name, 1),
  concurrency: readConcurrency,
  rateLimit: readRateLimit,
  fair: readFairness,
  limits: readLimitNames,
  maxAttempts: (value, name) => readInteger(value, name, 1, 32_767),
  priority: (value, name) => readInteger(value, name, -32_768, 32_767),
  queueName: readName,
};

export const taskOptionNames: readonly string[] = Object.keys(readers);

/** Reads a task's options; unknown keys and values that cannot work are errors. `where` names the place in messages. */
export function readTaskOptions(given: unknown, where: string): TaskRunSettings {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ConfigError(`${where} must be an object of task options, got ${inspect(given, { depth: 0 })}.`);
  }
  const read: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const reader = (readers as Record<string, Reader | undefined>)[key];
    if (!reader) throw new ConfigError(`Unknown task option '${key}' in ${where}.${suggestion(key, taskOptionNames)}`);
    if (value !== undefined) read[key] = reader(value, `${where}.${key}`);
  }
  return Object.freeze(read);
}

/** Milliseconds; undefined if it is no duration. */
export function toMs(value: unknown): number | undefined {
  const ms = typeof value === "string" ? parseSpan(value) : value;
  return typeof ms === "number" && Number.isFinite(ms) ? ms : undefined;
}

function readDuration(value: unknown, name: string, atLeast: number): number {
  const ms = toMs(value);
  if (ms !== undefined && ms >= atLeast) return ms;
  throw new ConfigError(
    `'${name}' must be a number of milliseconds from ${atLeast} up or a string such as '30s', got ${inspect(value)}.`,
  );
}

function readInteger(value: unknown, name: string, least: number, most?: number): number {
  const expected = expectWholeNumber(value, least, most);
  if (expected) throw new ConfigError(`'${name}' must be ${expected}, got ${inspect(value)}.`);
  return value as number;
}

function readBoolean(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw new ConfigError(`'${name}' must be true or false, got ${inspect(value)}.`);
}

function readName(value: unknown, name: string): unknown {
  if (typeof value === "function" || (typeof value === "string" && value !== "" && value.length <= 128)) return value;
  throw new ConfigError(`'${name}' must be a string of 1 to 128 characters, got ${inspect(value)}.`);
}

const backoffKeys = ["type", "delay", "maxDelay", "jitter"];
const factors = {
  exponential: (attempt: number) => 2 ** Math.min(attempt - 1, 40),
  linear: (attempt: number) => attempt,
  fixed: () => 1,
} as const;

function readBackoff(value: unknown, name: string): BackoffFunction {
  if (typeof value === "function") return value as BackoffFunction;
  if (typeof value !== "object" || value === null) {
    throw new ConfigError(`'${name}' must be an object { type, delay } or a function, got ${inspect(value)}.`);
  }
  for (const key of Object.keys(value)) {
    if (!backoffKeys.includes(key))
      throw new ConfigError(`Unknown key '${key}' in '${name}'.${suggestion(key, backoffKeys)}`);
  }
  const { type, delay, maxDelay, jitter = 0 } = value as Partial<BackoffOptions>;
  if (typeof type !== "string" || !Object.hasOwn(factors, type)) {
    const hint = typeof type === "string" ? suggestion(type, Object.keys(factors)) : "";
    throw new ConfigError(`'${name}.type' must be 'exponential', 'linear' or 'fixed', got ${inspect(type)}.${hint}`);
  }
  const baseMs = readDuration(delay, `${name}.delay`, 0);
  const mostMs = maxDelay === undefined ? Infinity : readDuration(maxDelay, `${name}.maxDelay`, 0);
  if (typeof jitter !== "number" || !(jitter >= 0 && jitter <= 1)) {
    throw new ConfigError(`'${name}.jitter' must be a number from 0 to 1, got ${inspect(jitter)}.`);
  }
  const factor = factors[type];
  return (attempt) => Math.min(mostMs, baseMs * factor(attempt)) * (1 + jitter * (2 * Math.random() - 1));
}
