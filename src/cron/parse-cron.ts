import type { ParsedCronItem } from "./cron-item.ts";
import { CrontabError, type CrontabProblem } from "./crontab-error.ts";
import { type CronItemInput, parseCronItem } from "./parse-cron-item.ts";
import { parseCrontab } from "./parse-crontab.ts";

/** Crontab text or an item. */
export type CronInput = string | CronItemInput;

/** Reads text, items and builders in one list, and names everything that is wrong with any of them. */
export function parseCron(inputs: readonly CronInput[]): ParsedCronItem[] {
  const problems: CrontabProblem[] = [];
  const items = inputs.flatMap((input, index) => {
    const source = `cron[${index}]`;
    try {
      return typeof input === "string" ? parseCrontab(input, { file: source }) : [parseCronItem(input, source)];
    } catch (error) {
      if (!(error instanceof CrontabError)) throw error;
      problems.push(...error.problems);
      return [];
    }
  });
  if (problems.length > 0) throw new CrontabError(problems);
  return items;
}
