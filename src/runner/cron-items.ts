import { resolve } from "node:path";
import { givenOf } from "../config/option.ts";
import { $$isParsed, type ParsedCronItem } from "../cron/cron-item.ts";
import { parseCron } from "../cron/parse-cron.ts";
import { parseCrontab } from "../cron/parse-crontab.ts";
import { type CrontabFile, readCrontab } from "../cron/read-crontab.ts";
import { ConfigError } from "../errors.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import type { RunnerOptions } from "./runner-options.ts";

/** Recurring jobs that were read from a file. */
export interface WatchedCronItems {
  items: ParsedCronItem[];
  /** The zone of items that name none; undefined for UTC. */
  timeZone: string | undefined;
  release: () => Promise<void>;
}

/** Reads a crontab; without a path, all recurring jobs of the options, as `run` would. It does not watch for changes; `release` does nothing. */
export async function getCronItems(options: RunnerOptions, crontabPath?: string): Promise<WatchedCronItems> {
  const compiled = compileSharedOptions(options);
  const items =
    crontabPath === undefined
      ? [...(await findCronItems(compiled))()]
      : await readCrontab({ path: crontabPath, isNamed: true }, compiled.safeLogger);
  return { items, timeZone: defaultTimeZone(compiled.settings), release: async () => undefined };
}

/** Undefined for UTC, which needs no conversion. */
export function defaultTimeZone({ timeZone }: { readonly timeZone: string }): string | undefined {
  return timeZone === "UTC" ? undefined : timeZone;
}

/** The recurring jobs that the options name, in whatever form. What the caller changes in a `parsedCronItems` array counts from then on. */
export async function findCronItems(
  compiled: CompiledSharedOptions<RunnerOptions>,
): Promise<() => readonly ParsedCronItem[]> {
  const { crontab, parsedCronItems } = givenOf(compiled._rawOptions);
  if (crontab !== undefined && parsedCronItems !== undefined) {
    throw new ConfigError("Give either 'crontab' or 'parsedCronItems', not both.");
  }
  if (crontab !== undefined && typeof crontab !== "string") {
    throw new ConfigError(
      "'crontab' must be the text of a crontab, such as '0 4 * * * send_report'; items in code go to 'cron'.",
    );
  }
  if (parsedCronItems !== undefined && !Array.isArray(parsedCronItems)) {
    throw new ConfigError(
      "Expected `parsedCronItems` to be an array; you must use a helper e.g. `parseCrontab()` or `parseCronItems()` to produce this value.",
    );
  }
  const [first] = parsedCronItems ?? [];
  if (first && !first[$$isParsed]) {
    throw new ConfigError(
      "Invalid `parsedCronItems`; you must use a helper e.g. `parseCrontab()` or `parseCronItems()` to produce this value.",
    );
  }
  const items =
    parsedCronItems ??
    (crontab !== undefined
      ? parseCrontab(crontab, { file: "crontab" })
      : await readCrontab(crontabFileOf(compiled), compiled.safeLogger));
  const further = parseCron(compiled.resolvedPreset.worker?.cron ?? []);
  const repeated = findRepeated(items);
  if (repeated !== undefined) {
    compiled.safeLogger.warn(
      `Two recurring jobs have the identifier '${repeated}': when both are due in the same minute, only the first runs. Give one of them another identifier.`,
    );
  }
  checkFurther(items, further);
  return () => (further.length === 0 ? items : [...items, ...further]);
}

function crontabFileOf({ settings, _rawOptions }: CompiledSharedOptions<RunnerOptions>): CrontabFile {
  const path = settings.crontabFile;
  return { path, isNamed: Boolean(_rawOptions.crontabFile) || path !== resolve("crontab") };
}

/** An identifier that two items have, if there is one. The database knows them as one. */
function findRepeated(items: readonly ParsedCronItem[]): string | undefined {
  const seen = new Set<string>();
  return items.find(({ identifier }) => seen.size === seen.add(identifier).size)?.identifier;
}

function checkFurther(items: readonly ParsedCronItem[], further: readonly ParsedCronItem[]): void {
  const known = new Set(items.map(({ identifier }) => identifier));
  const repeated = further.find(({ identifier }) => known.has(identifier))?.identifier ?? findRepeated(further);
  if (repeated === undefined) return;
  throw new ConfigError(`Two recurring jobs have the identifier '${repeated}'; give one of them another id.`);
}
