import type { SharedOptions } from "../config/options.ts";
import { $$isParsed, type ParsedCronItem } from "../cron/cron-item.ts";
import { parseCron } from "../cron/parse-cron.ts";
import { parseCrontab } from "../cron/parse-crontab.ts";
import { readCrontab } from "../cron/read-crontab.ts";
import { ConfigError } from "../errors.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import type { RunnerOptions } from "./runner-options.ts";

/** Recurring jobs that were read from a file. */
export interface WatchedCronItems {
  items: ParsedCronItem[];
  release: () => Promise<void>;
}

/** Reads a crontab. It stays as it is: nothing is watched, `release` does nothing. */
export async function getCronItems(options: SharedOptions, crontabPath: string): Promise<WatchedCronItems> {
  compileSharedOptions(options);
  return { items: await readCrontab(crontabPath), release: async () => undefined };
}

/** The recurring jobs that the options name, in whatever form. A `parsedCronItems` array is used as it is, and stays live. */
export async function findCronItems(compiled: CompiledSharedOptions<RunnerOptions>): Promise<ParsedCronItem[]> {
  const { crontab, parsedCronItems, crontabFile } = compiled._rawOptions;
  if (crontab !== undefined && parsedCronItems !== undefined) {
    throw new ConfigError("Give either 'crontab' or 'parsedCronItems', not both.");
  }
  const [first] = parsedCronItems ?? [];
  if (first && !first[$$isParsed]) {
    throw new ConfigError(
      "Invalid `parsedCronItems`; you must use a helper e.g. `parseCrontab()` or `parseCronItems()` to produce this value.",
    );
  }
  const items =
    parsedCronItems ??
    (crontab !== undefined ? parseCrontab(crontab) : await readCrontab(crontabFile ?? compiled.settings.crontabFile));
  const further = compiled.resolvedPreset.worker?.cron ?? [];
  if (further.length === 0) return items;
  const all = parsedCronItems ? parsedCronItems : [...items];
  for (const item of parseCron(further)) {
    if (all.some(({ identifier }) => identifier === item.identifier)) {
      throw new ConfigError(
        `Two recurring jobs have the identifier '${item.identifier}'; give one of them another id.`,
      );
    }
    all.push(item);
  }
  return all;
}
