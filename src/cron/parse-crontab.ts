import JSON5 from "json5";
import { $$isParsed, type CronPayload, type ParsedCronItem } from "./cron-item.ts";
import { createMatcher } from "./cron-match.ts";
import { type LineOptions, parseLineOptions } from "./cron-options.ts";
import { findStrangeToken, parsePattern, patternSyntax, splitPattern, type Token } from "./cron-pattern.ts";
import { CrontabError, type CrontabProblem } from "./crontab-error.ts";
import { type ReportProblem, reportFrom } from "./report-problem.ts";

export interface CrontabSource {
  /** How messages name the file. */
  readonly file?: string;
}

/** Reads a whole crontab. Throws one {@link CrontabError} that lists everything wrong with it. */
export function parseCrontab(crontab: string, source: CrontabSource = {}): ParsedCronItem[] {
  const { file = "crontab" } = source;
  const items: ParsedCronItem[] = [];
  const problems: CrontabProblem[] = [];
  const lineByItem = new Map<ParsedCronItem, number>();

  crontab.split(/\r?\n/).forEach((rawLine, index) => {
    const line = rawLine.trim();
    if (line === "" || line.startsWith("#")) return;
    const indent = rawLine.length - rawLine.trimStart().length;
    const item = parseLine(line, index + 1, ({ offset, ...problem }) =>
      problems.push({ file, line: index + 1, column: indent + offset + 1, ...problem }),
    );
    items.push(item);
    lineByItem.set(item, index + 1);
  });

  problems.push(...findDuplicates(items, lineByItem, file));
  if (problems.length > 0) {
    problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    throw new CrontabError(problems, { isNamed: source.file !== undefined });
  }
  return items;
}

function parseLine(line: string, number: number, report: ReportProblem): ParsedCronItem {
  const source = `line ${number} of crontab`;
  const split = splitPattern(line);
  const strange = split ? findStrangeToken(split.tokens) : { text: line, offset: 0 };
  const isUnreadable = strange !== undefined || split === undefined || split.rest.text === "";
  if (isUnreadable) {
    const expected = `${patternSyntax}, then a task`;
    const message = `Could not process line '${number}' of crontab: '${line}'`;
    const more = `\nExpected ${expected}.`;
    report({ offset: strange?.offset ?? line.length, text: strange?.text ?? line, expected, message, more });
  }
  const match = createMatcher(parsePattern(split?.tokens ?? [], source, report));
  const command = split && !isUnreadable ? parseCommand(split.rest, source, report) : unreadCommand;
  return { [$$isParsed]: true, match, ...command };
}

type Command = Omit<ParsedCronItem, typeof $$isParsed | "match">;

const unreadCommand: Command = { task: "", options: { backfillPeriod: 0 }, payload: null, identifier: "" };
const commandSyntax = /^([_a-zA-Z][_a-zA-Z0-9:/_-]*)(?:\s+\?([^\s]+))?(?:\s+(\{.*\}))?$/d;

function parseCommand({ text, offset }: Token, source: string, report: ReportProblem): Command {
  const found = commandSyntax.exec(text);
  if (!found) {
    const expected = "a task name, then if wanted '?options' and a '{payload}'";
    const message = `Invalid command specification in ${source}.`;
    report({ offset, text, expected, message, more: ` Expected ${expected}, got '${text}'.` });
    return unreadCommand;
  }
  const [, task = "", query = "", payload] = found;
  const [, , queryAt, payloadAt] = found.indices!;
  const { id, options }: LineOptions = parseLineOptions(
    query,
    source,
    reportFrom(report, offset + (queryAt?.[0] ?? 0)),
  );
  return {
    task,
    options,
    payload: parsePayload(payload, source, reportFrom(report, offset + (payloadAt?.[0] ?? 0))),
    identifier: id ?? task,
  };
}

function parsePayload(text: string | undefined, source: string, report: ReportProblem): CronPayload | null {
  if (text === undefined) return null;
  try {
    return JSON5.parse<CronPayload>(text);
  } catch (error) {
    const { message, columnNumber = 1 } = error as Error & { columnNumber?: number };
    report({
      offset: columnNumber - 1,
      text,
      expected: "a JSON5 object",
      message: `Failed to parse JSON5 payload on ${source}: ${message}`,
    });
    return null;
  }
}

function findDuplicates(
  items: readonly ParsedCronItem[],
  lineByItem: ReadonlyMap<ParsedCronItem, number>,
  file: string,
): CrontabProblem[] {
  const seen = new Set<string>();
  const duplicates = new Map<string, number>();
  for (const item of items) {
    if (item.identifier !== "" && seen.has(item.identifier)) duplicates.set(item.identifier, lineByItem.get(item)!);
    seen.add(item.identifier);
  }
  if (duplicates.size === 0) return [];
  const quoted = [...duplicates.keys()].map((identifier) => `'${identifier}'`).join(", ");
  const message =
    `Invalid crontab; duplicate identifiers found: ${quoted} - ` +
    "please use '?id=...' to specify unique identifiers for your cron items";
  const line = Math.min(...duplicates.values());
  return [{ file, line, column: 1, text: quoted, expected: "a different '?id=…' on each line", message }];
}
