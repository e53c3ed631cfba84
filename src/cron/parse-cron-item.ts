import { nearest } from "../util/nearest.ts";
import {
  $$isParsed,
  type CronItem,
  type CronItemOptions,
  type CronMatcher,
  type ParsedCronItem,
  type PatternCronItem,
} from "./cron-item.ts";
import { createMatcher } from "./cron-match.ts";
import { parseSeconds } from "./cron-options.ts";
import { findStrangeToken, parsePattern, patternSyntax, splitPattern } from "./cron-pattern.ts";
import { CrontabError, type CrontabProblem } from "./crontab-error.ts";
import { isTimeZone } from "./time-zone.ts";

/** An item in the making, such as `cron.everyMinute("task")`. */
interface CronItemBuilder {
  build(): CronItem;
}

/** Whatever describes a recurring job in code. */
export type CronItemInput = CronItem | PatternCronItem | CronItemBuilder | ParsedCronItem;

/** Checks recurring jobs given in code, for the option `parsedCronItems`. Unlike lines of a crontab, items may share an identifier. */
export function parseCronItems(items: readonly CronItemInput[]): ParsedCronItem[] {
  return items.map((item, index) => parseCronItem(item, `item ${index} of parseCronItems call`));
}

/** Checks one recurring job. Throws a {@link CrontabError} that lists everything wrong with it. */
export function parseCronItem(input: CronItemInput, source = "parseCronItem call"): ParsedCronItem {
  if (typeof input !== "object" || input === null) {
    const expected = "an object such as { task: 'send_email', match: '30 4 * * 1' }";
    const message = `Invalid cron item in ${source}: expected ${expected}, got ${String(input)}.`;
    throw new CrontabError([{ file: source, text: String(input), expected, message }]);
  }
  const item = "build" in input ? input.build() : input;
  const problems: CrontabProblem[] = [];
  const report = (text: unknown, expected: string, message: string): void => {
    problems.push({ file: source, text: String(text), expected, message });
  };

  reportStrangeKeys(item, source, report);
  const match = parseMatch(item, source, report);
  const options = parseOptions(item.options ?? {}, source, report);
  if (problems.length > 0) throw new CrontabError(problems);
  return {
    [$$isParsed]: true,
    match,
    task: item.task,
    options,
    // A parsed item may come through again; its null stays.
    payload: item.payload === undefined ? {} : item.payload,
    identifier: item.identifier ?? item.task,
  };
}

type Report = (text: unknown, expected: string, message: string) => void;

const itemKeys = ["task", "match", "pattern", "options", "payload", "identifier"];
const optionKeys = [
  "backfillPeriod",
  "maxAttempts",
  "queueName",
  "priority",
  "jobKey",
  "jobKeyMode",
  "timeZone",
  "dst",
  "missed",
  "overlap",
  "flags",
  "seconds",
] satisfies (keyof CronItemOptions)[];

/** A key that is misspelt or on the wrong level would change when jobs run, so it is refused; a key like none of ours is left alone. */
function reportStrangeKeys(item: object, source: string, report: Report): void {
  for (const key of Object.keys(item).filter((name) => !itemKeys.includes(name))) {
    const option = meant(key, optionKeys);
    const expected = meant(key, itemKeys) ?? (option && `options: { ${option} }`);
    if (expected) report(key, expected, `Unknown key '${key}' in ${source}. Did you mean '${expected}'?`);
  }
  const { options } = item as { options?: unknown };
  if (typeof options !== "object" || options === null) return;
  for (const key of Object.keys(options).filter((name) => !(optionKeys as string[]).includes(name))) {
    const expected = meant(key, optionKeys);
    if (expected) report(key, expected, `Unknown key 'options.${key}' in ${source}. Did you mean '${expected}'?`);
  }
}

/** Short words are close to many others. */
function meant(key: string, names: readonly string[]): string | undefined {
  return names.includes(key) || key.length >= 5 ? nearest(key, names) : undefined;
}

function parseMatch(item: CronItem | PatternCronItem | ParsedCronItem, source: string, report: Report): CronMatcher {
  const match: unknown = item.match ?? ("pattern" in item ? item.pattern : undefined);
  if (typeof match === "function") return match as CronMatcher;
  if (typeof match !== "string") {
    const expected = "a pattern such as '30 4 * * 1', or a function";
    report(match, expected, `Invalid 'match' configuration in ${source}: expected ${expected}, got ${String(match)}.`);
    return () => false;
  }
  const split = splitPattern(match);
  const last = split?.tokens.at(-1);
  const isWhole = last !== undefined && last.offset + last.text.length === match.length;
  if (!split || !isWhole || findStrangeToken(split.tokens)) {
    report(match, patternSyntax, `Invalid cron pattern '${match}' in ${source}: expected ${patternSyntax}.`);
    return () => false;
  }
  return createMatcher(
    parsePattern(split.tokens, source, ({ text, expected, message }) => report(text, expected, message)),
  );
}

function parseOptions(
  options: NonNullable<CronItem["options"]> | ParsedCronItem["options"],
  source: string,
  report: Report,
): ParsedCronItem["options"] {
  const { seconds, ...others } = options;
  const parsed = { ...others, backfillPeriod: options.backfillPeriod ?? 0 };
  const check = (name: string, value: unknown, isGood: boolean, expected: string): void => {
    if (!isGood)
      report(value, expected, `Invalid '${name}' in ${source}: expected ${expected}, got '${String(value)}'.`);
  };
  const oneOf = (name: string, value: string | undefined, ...allowed: string[]): void => {
    const expected = allowed.map((word) => `'${word}'`).join(" or ");
    check(name, value, value === undefined || allowed.includes(value), expected);
  };

  const { timeZone, dst, missed, overlap, flags, maxAttempts, priority } = options;
  const inRange = (value: unknown, least: number): boolean =>
    value === undefined || value === null || (Number.isInteger(Number(value)) && +value >= least && +value <= 32_767);
  check("maxAttempts", maxAttempts, inRange(maxAttempts, 1), "a whole number from 1 to 32767");
  check("priority", priority, inRange(priority, -32_768), "a whole number from -32768 to 32767");
  check("timeZone", timeZone, timeZone === undefined || isTimeZone(timeZone), "a time zone such as 'Europe/Berlin'");
  oneOf("dst.skipped", dst?.skipped, "run", "skip");
  oneOf("dst.repeated", dst?.repeated, "first", "last", "both");
  oneOf("missed", missed, "all", "last", "none");
  oneOf("overlap", overlap, "skip", "allow");
  check("flags", flags, flags === undefined || flags.every((flag) => typeof flag === "string"), "a list of names");
  if (missed === "none" && parsed.backfillPeriod > 0) {
    check("missed", missed, false, "no 'none' together with a 'backfillPeriod': keep one of them");
  }
  if (seconds === undefined) return parsed;
  const parsedSeconds = typeof seconds === "string" ? parseSeconds(seconds) : seconds;
  check("seconds", seconds, parsedSeconds !== undefined, "a crontab field for the seconds 0 to 59");
  return { ...parsed, seconds: parsedSeconds ?? [] };
}
