import { parse as parseQuery } from "node:querystring";
import { parseField, secondsField } from "./cron-field.ts";
import type { DstPolicy, ParsedCronItemOptions } from "./cron-item.ts";
import type { ReportProblem } from "./report-problem.ts";
import { isTimePhrase, parseTimePhrase } from "./time-phrase.ts";
import { isTimeZone } from "./time-zone.ts";

/** What the `?…` part of a crontab line says. */
export interface LineOptions {
  readonly id?: string;
  readonly options: ParsedCronItemOptions;
}

interface OptionRule {
  readonly expected: string;
  readonly accepts: (value: string) => boolean;
}

/** In the order in which messages list them; the first seven are Graphile Worker's. */
const rules = {
  id: {
    expected: "letters, digits, '-' and '_', not starting with a digit",
    accepts: matching(/^[_a-zA-Z][-_a-zA-Z0-9]*$/),
  },
  fill: { expected: "a time phrase such as '4w3d2h1m'", accepts: isTimePhrase },
  max: { expected: "a whole number from 1 to 32767", accepts: smallint(1) },
  queue: {
    expected: "1 to 128 letters, digits, '-', '_' and ':'",
    accepts: matching(/^[-a-zA-Z0-9_:]{1,128}$/),
  },
  jobKey: { expected: "at most 512 characters on one line", accepts: matching(/^.{0,512}$/u) },
  jobKeyMode: { expected: "'replace' or 'preserve_run_at'", accepts: matching(/^(?:replace|preserve_run_at)$/) },
  priority: { expected: "a whole number from -32768 to 32767", accepts: smallint(-32_768) },
  tz: { expected: "a time zone such as 'Europe/Berlin'", accepts: (value) => isTimeZone(asZoneName(value)) },
  dst: {
    expected: "'run' or 'skip', 'first', 'last' or 'both', or one of each with a comma",
    accepts: (value) => parseDst(value) !== undefined,
  },
  missed: { expected: "'all', 'last' or 'none'", accepts: matching(/^(?:all|last|none)$/) },
  overlap: { expected: "'skip' or 'allow'", accepts: matching(/^(?:skip|allow)$/) },
  flags: { expected: "names with commas between them", accepts: matching(/^[^,]+(?:,[^,]+)*$/) },
  seconds: {
    expected: "a crontab field for the seconds 0 to 59",
    accepts: (value) => parseSeconds(value) !== undefined,
  },
} satisfies Record<string, OptionRule>;

type OptionName = keyof typeof rules;
const names = Object.keys(rules) as OptionName[];

/** Reads `id=a&fill=1h`; `source` is how messages name the line. */
export function parseLineOptions(query: string, source: string, report: ReportProblem): LineOptions {
  const given: Partial<Record<OptionName, string>> = {};
  let offset = 0;
  for (const piece of query.split("&")) {
    const [[name, value] = ["", ""]] = Object.entries(parseQuery(piece)) as [string, string][];
    const fault = piece === "" ? undefined : checkOption(name, value, given, source);
    if (fault) report({ offset, text: piece, ...fault });
    else if (piece !== "") given[name as OptionName] = value;
    offset += piece.length + 1;
  }
  if (given.fill !== undefined && given.missed === "none") {
    const expected = "either 'fill' or 'missed=none'";
    const message = `Options on ${source} ask to 'fill' and, with 'missed=none', never to catch up: keep one of them.`;
    report({ offset: query.indexOf("missed"), text: query, expected, message });
  }
  return toLineOptions(given);
}

function checkOption(
  name: string,
  value: string,
  given: Partial<Record<string, string>>,
  source: string,
): { expected: string; message: string; more?: string } | undefined {
  if (!Object.hasOwn(rules, name)) {
    const quoted = names.map((known) => `'${known}'`);
    const message = `Options on ${source} contains unsupported key '${name}'; supported keys are: ${quoted.slice(0, 7).join(", ")}.`;
    const more = ` Beyond these: ${quoted.slice(7).join(", ")}.`;
    return { expected: `one of ${quoted.join(", ")}`, message, more };
  }
  const invalid = `Options on ${source} contains invalid value for '${name}'`;
  if (given[name] !== undefined) {
    return { expected: `'${name}' once`, message: `${invalid}, did you specify it more than once?` };
  }
  const rule: OptionRule = rules[name as OptionName];
  if (rule.accepts(value)) return undefined;
  const message = `${invalid}, value '${value}' is not compatible with this option.`;
  return { expected: rule.expected, message, more: ` Expected ${rule.expected}.` };
}

function toLineOptions(given: Partial<Record<OptionName, string>>): LineOptions {
  const { id, tz, dst, missed, overlap, flags, seconds } = given;
  return {
    ...(id !== undefined && { id }),
    options: {
      backfillPeriod: given.fill === undefined ? 0 : parseTimePhrase(given.fill),
      maxAttempts: toNumber(given.max),
      queueName: given.queue,
      priority: toNumber(given.priority),
      jobKey: given.jobKey,
      jobKeyMode: (given.jobKeyMode ?? (given.jobKey ? "replace" : undefined)) as ParsedCronItemOptions["jobKeyMode"],
      ...(tz !== undefined && { timeZone: asZoneName(tz) }),
      ...(dst !== undefined && { dst: parseDst(dst) }),
      ...(missed !== undefined && { missed: missed as ParsedCronItemOptions["missed"] }),
      ...(overlap !== undefined && { overlap: overlap as ParsedCronItemOptions["overlap"] }),
      ...(flags !== undefined && { flags: flags.split(",") }),
      ...(seconds !== undefined && { seconds: parseSeconds(seconds) }),
    },
  };
}

/** `undefined` if the text is no list of seconds. */
export function parseSeconds(text: string): number[] | undefined {
  let isValid = true;
  const seconds = parseField(text, secondsField, "seconds", () => {
    isValid = false;
  });
  return isValid ? seconds : undefined;
}

function parseDst(text: string): DstPolicy | undefined {
  const words = text.split(",");
  const skipped = words.filter((word) => word === "run" || word === "skip");
  const repeated = words.filter((word) => word === "first" || word === "last" || word === "both");
  if (skipped.length > 1 || repeated.length > 1 || skipped.length + repeated.length < words.length) return undefined;
  return { ...(skipped[0] && { skipped: skipped[0] }), ...(repeated[0] && { repeated: repeated[0] }) };
}

/** A query string turns '+' into a space, but `Etc/GMT+5` means its plus. */
function asZoneName(value: string): string {
  return value.replaceAll(" ", "+");
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number.parseInt(text, 10);
}

/** What the database can hold. */
function smallint(least: number): (value: string) => boolean {
  return (value) => /^-?[0-9]+$/.test(value) && Number(value) >= least && Number(value) <= 32_767;
}

function matching(pattern: RegExp): (value: string) => boolean {
  return (value) => pattern.test(value);
}
