import type { ParsedCronItem, ParsedCronMatch } from "../../../index.ts";

const fields: readonly [name: keyof ParsedCronMatch, first: number, last: number][] = [
  ["minutes", 0, 59],
  ["hours", 0, 23],
  ["dates", 1, 31],
  ["months", 1, 12],
  ["dows", 0, 6],
];

/** The pattern of an item as a crontab would have it; null if it is a function of the user's. */
export function describePattern({ match }: ParsedCronItem): string | null {
  const { parsedCronMatch: parsed } = match as { parsedCronMatch?: ParsedCronMatch };
  if (!parsed) return null;
  return fields.map(([name, first, last]) => describeField(parsed[name], first, last)).join(" ");
}

function describeField(given: readonly number[], first: number, last: number): string {
  const values = [...new Set(given)].sort((a, b) => a - b);
  const size = last - first + 1;
  if (values.length >= size) return "*";
  const [start = first, second] = values;
  const step = second === undefined ? 0 : second - start;
  const isEven = values.length > 2 && values.every((value, index) => value === start + index * step);
  if (isEven && step === 1) return `${start}-${values.at(-1)}`;
  if (isEven && start === first && start + values.length * step > last) return `*/${step}`;
  return values.join(",");
}
