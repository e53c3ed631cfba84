import { inspect } from "node:util";
import { readConnectionString } from "../connection-string.ts";
import { ConfigError } from "../errors.ts";
import {
  type HistoryLevel,
  type Retention,
  type RetentionOptions,
  readHistoryLevel,
  readRetention,
} from "../kept-history.ts";
import { type LimitDefinition, readSharedLimits, type SharedLimit } from "../limit-options.ts";
import { readTaskOptions, type TaskRunOptions, type TaskRunSettings } from "../task-options.ts";
import { parseSpan } from "../util/time-span.ts";
import { type Given, type Kind, type OptionTable, type Resolved, readOptions } from "./option.ts";

/** A value that is used as it is given; refused with what must hold and what was given. */
function must<T>(type: string, requirement: string, holds: (value: unknown) => boolean): Kind<T> {
  return {
    type,
    read(value, name) {
      if (holds(value)) return value as T;
      throw new ConfigError(`'${name}' must be ${requirement}, got ${inspect(value, { depth: 1 })}.`);
    },
  };
}

function toNumber(value: unknown): unknown {
  return typeof value === "string" && value.trim() !== "" ? Number(value) : value;
}

/** A number; one that arrives as a string (from the environment, say) is read as what it says. */
function aNumberThat(requirement: string, holds: (value: number) => boolean): Kind<number> {
  const kind = must<number>("number", requirement, (value) => typeof value === "number" && holds(value));
  return {
    ...kind,
    read(value, name) {
      const number = toNumber(value);
      return typeof number === "number" && holds(number) ? number : kind.read(value, name);
    },
  };
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

export const aText = must<string>("string", "a non-empty string", (value) => typeof value === "string" && value !== "");
export const texts = must<string[]>("string[]", "an array of strings", isTexts);
export const aBoolean = must<boolean>("boolean", "true or false", (value) => typeof value === "boolean");
export const aNumber = aNumberThat("a finite number", Number.isFinite);
export const aCount = aNumberThat("a whole number from 1 up", (value) => Number.isSafeInteger(value) && value >= 1);
export const aFactor = aNumberThat("a number from 1 up", (value) => Number.isFinite(value) && value >= 1);
export const aDelay = aNumberThat(
  "a number of milliseconds from 0 up",
  (value) => Number.isFinite(value) && value >= 0,
);
export const anInterval = aNumberThat(
  "a number of milliseconds from 1 up",
  (value) => Number.isFinite(value) && value >= 1,
);
/** `Infinity`: never. The same holds for the next one. */
export const anIntervalOrNever = aNumberThat("a number of milliseconds from 1 up, or Infinity", (value) => value >= 1);
export const aDelayOrNever = aNumberThat("a number of milliseconds from 0 up, or Infinity", (value) => value >= 0);
/** `Infinity`: no limit. */
export const anAmountOrInfinity = aNumberThat("a number from 0 up, or Infinity", (value) => value >= 0);

/** A length of time: milliseconds, or a string such as `30s`, `5m`, `1h 30m`. */
export const aDuration: Kind<number | string, number> = {
  type: "number | string",
  read(value, name) {
    const ms = typeof value === "string" ? (parseSpan(value) ?? toNumber(value)) : value;
    if (typeof ms === "number" && Number.isFinite(ms) && ms >= 0) return ms;
    throw new ConfigError(
      `'${name}' must be a number of milliseconds or a string such as '30s' or '5m', got ${inspect(value, { depth: 1 })}.`,
    );
  },
};

/** Each has a slot in memory, whether a job runs in it or not. */
const mostJobs = 100_000;
const fits = aNumberThat(`at most ${mostJobs}`, (value) => value <= mostJobs);
export const aConcurrency: Kind<number> = {
  type: "number",
  read: (value, name) => fits.read(aCount.read(value, name), name),
};

/** A URL, or the name of a database. */
export const aConnectionString: Kind<string> = {
  type: "string",
  read(value, name) {
    const text = aText.read(value, name);
    readConnectionString(text);
    return text;
  },
};

/** PostgreSQL cuts longer names off, and two schemas could become one. */
export const aSchemaName = must<string>("string", "a name of 1 to 63 bytes", (value) => {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 63 && !value.includes("\0");
});

export const aTimeZone = must<string>("string", "a time zone such as 'Europe/Berlin'", (value) => {
  // The default: asking costs 20 ms and 8 MB, which most workers never need again.
  if (value === "UTC") return true;
  try {
    return typeof value === "string" && Intl.DateTimeFormat("en", { timeZone: value }) !== undefined;
  } catch {
    return false;
  }
});

const someTexts = must<string[]>("string[]", "an array of file extensions such as '.js'", (value) => {
  return isTexts(value) && value.every((extension) => extension !== "");
});
/** With or without the dot. */
export const extensions: Kind<string[]> = {
  ...someTexts,
  read: (value, name) => someTexts.read(value, name).map((text) => (text.startsWith(".") ? text : `.${text}`)),
};

/** An object of the user's own, or one that is checked where it is used. */
export function anObject<T>(type: string): Kind<T> {
  return must<T>(type, "an object", (value) => typeof value === "object" && value !== null);
}

/** Checked where it is used. */
export function anything<T>(type: string): Kind<T> {
  return { type, read: (value) => value as T };
}

/** Task options by the names of tasks. */
export const taskOptionsByName: Kind<{ [task: string]: TaskRunOptions }, { readonly [task: string]: TaskRunSettings }> =
  {
    type: "{ [task: string]: TaskRunOptions }",
    read(value, name) {
      const given = anObject<object>("object").read(value, name);
      return Object.fromEntries(
        Object.entries(given).map(([task, options]) => [task, readTaskOptions(options, `${name}['${task}']`)]),
      );
    },
  };

/** Shared limits by name. */
export const sharedLimits: Kind<
  { [limit: string]: SharedLimit },
  { readonly [limit: string]: readonly LimitDefinition[] }
> = { type: "{ [limit: string]: SharedLimit }", read: readSharedLimits };

export const aHistoryLevel: Kind<HistoryLevel> = { type: '"off" | "outcomes" | "full"', read: readHistoryLevel };

export const aRetention: Kind<RetentionOptions, Partial<Retention>> = { type: "RetentionOptions", read: readRetention };

/** A group of options: an object that has a table of its own. */
export function aGroup<Table extends OptionTable, In = Given<Table>>(
  type: string,
  table: Table,
): Kind<In, Resolved<Table>> {
  const object = anObject<object>(type);
  return { type, inner: table, read: (value, name) => readOptions(table, object.read(value, name), `${name}.`) };
}
