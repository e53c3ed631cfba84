import { type ReportProblem, reportFrom } from "./report-problem.ts";

/** One column of a crontab: what it is called and which values it may hold. */
export interface CronField {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  /** Names of the values from `min` up. */
  readonly names?: readonly string[];
  /** A second way to write `min` (the weekday 7 is Sunday). */
  readonly alias?: number;
}

export const secondsField: CronField = { label: "seconds", min: 0, max: 59 };

export const cronFields = {
  minutes: { label: "minutes", min: 0, max: 59 },
  hours: { label: "hours", min: 0, max: 23 },
  dates: { label: "dates", min: 1, max: 31 },
  months: {
    label: "months",
    min: 1,
    max: 12,
    names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
  },
  dows: {
    label: "days of week",
    min: 0,
    max: 6,
    names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    alias: 7,
  },
} satisfies Record<string, CronField>;

/** The values a field's text stands for, ascending and without repeats. Faults go to `report`. */
export function parseField(text: string, field: CronField, source: string, report: ReportProblem): number[] {
  const values = new Set<number>();
  let offset = 0;
  for (const part of text.split(",")) {
    const found = parsePart(part, field, source, reportFrom(report, offset));
    for (const value of found) values.add(value === field.alias ? field.min : value);
    offset += part.length + 1;
  }
  return [...values].sort((a, b) => a - b);
}

/** Whether a string could be this field at all; if not, the line is something other than a crontab entry. */
export function looksLikeField(text: string, field: CronField): boolean {
  if (!/^[0-9a-z*/,-]+$/i.test(text)) return false;
  const words = text.match(/[a-z]+/gi) ?? [];
  return words.every((word) => field.names?.includes(word.toLowerCase()));
}

function parsePart(part: string, field: CronField, source: string, report: ReportProblem): number[] {
  const where = `in ${field.label} range in ${source}`;
  const fault = (message: string, expected: string): number[] => {
    report({ offset: 0, text: part, expected, message });
    return [];
  };

  const [, wildcard, from, to, step] =
    /^(?:(\*)|([0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?)(?:\/([0-9]+))?$/i.exec(part) ?? [];
  const first = wildcard ? field.min : readValue(from, field);
  const last = wildcard ? field.max : to === undefined ? first : rangeEnd(to, first, field);
  const isNumberWithStep = step !== undefined && !wildcard && to === undefined;
  if (first === undefined || last === undefined || isNumberWithStep) {
    return fault(
      `Unsupported syntax '${part}' ${where}: this doesn't appear to be a number, range or wildcard`,
      describeSyntax(field),
    );
  }

  if (to !== undefined && last <= first) {
    const expected = "a range whose end is larger than its start";
    return fault(`Invalid range '${part}' ${where}: destination is not larger than source`, expected);
  }
  const range = `values in the range ${field.min}-${field.max}`;
  for (const value of [first, last]) {
    if (value < field.min) return fault(`Too small value '${value}' ${where}: expected ${range}.`, range);
    if (value > (field.alias ?? field.max))
      return fault(`Too large value '${value}' ${where}: expected ${range}.`, range);
  }
  const stride = Number(step ?? 1);
  if (stride < 1) {
    const expected = "a divisor greater than zero";
    const message = `Invalid wildcard expression '${part}' ${where}: divisor '${step}' expected to be greater than zero`;
    return fault(message, expected);
  }
  return countFrom(first, last, stride);
}

function readValue(text: string | undefined, field: CronField): number | undefined {
  if (text === undefined) return undefined;
  if (/^[0-9]+$/.test(text)) return Number(text);
  const index = field.names?.indexOf(text.toLowerCase()) ?? -1;
  return index < 0 ? undefined : field.min + index;
}

/** `fri-sun` ends on the Sunday after, so a name at the end of a range may mean the alias of the first value. */
function rangeEnd(text: string, first: number | undefined, field: CronField): number | undefined {
  const value = readValue(text, field);
  const isName = !/^[0-9]/.test(text);
  return isName && value === field.min && first !== undefined && first > field.min ? (field.alias ?? value) : value;
}

function describeSyntax({ min, max, names }: CronField): string {
  const example = names ? `, a name such as '${names[1]}'` : "";
  return `a number from ${min} to ${max}${example}, a range 'a-b', '*', '*/n' or 'a-b/n', or several of these with commas`;
}

function countFrom(first: number, last: number, step: number): number[] {
  const values: number[] = [];
  for (let value = first; value <= last; value += step) values.push(value);
  return values;
}
