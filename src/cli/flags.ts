import type { Options } from "yargs";
import { parseSpan as parseSpanText } from "../util/time-span.ts";
import { expectWholeNumber } from "../util/whole-number.ts";
import { UsageError } from "./usage-error.ts";

const flags = <const F extends { readonly [name: string]: Options }>(options: F): F => options;

/** Where the queue is. */
export const databaseFlags = flags({
  connection: {
    alias: ["c", "database-url"],
    type: "string",
    requiresArg: true,
    describe:
      "Database connection string; else the config file's, DATABASE_URL, the PG* variables, or an embedded database",
  },
  schema: {
    alias: "s",
    type: "string",
    requiresArg: true,
    describe: "The schema that holds the jobs (default: GRAPHILE_WORKER_SCHEMA or graphile_worker)",
  },
  config: {
    alias: "C",
    type: "string",
    requiresArg: true,
    describe: "The config file (default: hathi.config.* or graphile.config.* in this folder)",
  },
});

/** For commands that can show the same again and again. */
export const watchFlags = {
  watch: {
    type: "boolean",
    default: false,
    describe: "Refresh in place until q or Ctrl-C; one snapshot after the other in a pipe",
  },
  interval: { type: "number", default: 2, describe: "Seconds between two refreshes" },
} as const;

export const jsonFlag = flags({
  json: { type: "boolean", default: false, describe: "Answer in JSON" },
});

export const yesFlag = flags({
  yes: { alias: "y", type: "boolean", default: false, describe: "Do not ask" },
});

/** Which jobs are meant. */
export const filterFlags = flags({
  state: { type: "string", requiresArg: true, describe: "waiting, scheduled, running or dead" },
  task: { alias: "identifier", type: "string", requiresArg: true, describe: "A task's identifier" },
  queue: { type: "string", requiresArg: true, describe: "A queue's name" },
  key: { type: "string", requiresArg: true, describe: "A job's key" },
  since: {
    type: "string",
    requiresArg: true,
    describe: "Added since then: a date, or how long ago (30s, 15m, 2h, 7d)",
  },
  search: { type: "string", requiresArg: true, describe: "Words in payload, key, task or last error" },
});

/** A length of time such as `90` (seconds), `90s`, `15m`, `1h30m` or `7d`, in milliseconds. */
export function parseSpan(flag: string, text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : parseSpanText(text);
  if (ms === undefined)
    throw new UsageError(`--${flag} must be a length of time such as 30s, 15m, 2h or 7d, got '${text}'.`);
  return ms;
}

/** A moment: a date, `now`, or a length of time from now (in the direction of the sign). */
export function parseMoment(flag: string, text: string, direction: 1 | -1): Date {
  if (text === "now") return new Date();
  const span = parseSpanText(text);
  const date = new Date(span === undefined ? text : Date.now() + direction * span);
  if (Number.isNaN(date.getTime())) {
    throw new UsageError(
      `--${flag} must be a date such as 2026-12-31T18:00:00Z, 'now', or a length of time such as 15m, got '${text}'.`,
    );
  }
  return date;
}

/** A flag's number that must be a count. */
export function wholeNumber(flag: string, value: number | undefined, least: number, most?: number): number | undefined {
  if (value === undefined) return undefined;
  const expected = expectWholeNumber(value, least, most);
  if (expected) throw new UsageError(`--${flag} must be ${expected}, got ${value}.`);
  return value;
}
