import type { Options } from "yargs";
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

export const jsonFlag = flags({
  json: { type: "boolean", default: false, describe: "Answer in JSON" },
});

export const yesFlag = flags({
  yes: { alias: "y", type: "boolean", default: false, describe: "Do not ask" },
});

/** Which jobs are meant. */
export const filterFlags = flags({
  state: { type: "string", requiresArg: true, describe: "ready, scheduled, running or failed" },
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

const spanUnits: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** A length of time such as `90`, `90s`, `15m`, `1h30m` or `7d`, in milliseconds. */
export function parseSpan(flag: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  if (!/^(\d+[smhdw])+$/.test(text))
    throw new UsageError(`--${flag} must be a length of time such as 30s, 15m, 2h or 7d, got '${text}'.`);
  return [...text.matchAll(/(\d+)([smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (spanUnits[unit!] ?? 0),
    0,
  );
}

/** A moment: a date, `now`, or a length of time from now (in the direction of the sign). */
export function parseMoment(flag: string, text: string, direction: 1 | -1): Date {
  if (text === "now") return new Date();
  if (/^(\d+[smhdw])+$/.test(text)) return new Date(Date.now() + direction * parseSpan(flag, text));
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) {
    throw new UsageError(
      `--${flag} must be a date such as 2026-12-31T18:00:00Z, 'now', or a length of time such as 15m, got '${text}'.`,
    );
  }
  return date;
}

/** yargs turns what is not a number into NaN; a fraction is no count either. */
export function wholeNumber(flag: string, value: number | undefined, least: number): number | undefined {
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || value < least) {
    throw new UsageError(
      `--${flag} must be a whole number from ${least} up${Number.isNaN(value) ? "" : `, got ${value}`}.`,
    );
  }
  return value;
}
