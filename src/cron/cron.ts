import { type CronEntry, type CronTask, entryFor, taskNameOf, wholeNumber } from "./cron-entry.ts";
import type { CronMatcher } from "./cron-item.ts";
import { parseCronItem } from "./parse-cron-item.ts";
import { nextRuns, previousRuns } from "./upcoming.ts";

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
export type Weekday = (typeof weekdays)[number];
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Builds recurring jobs in code. A task is its name or its definition. Values out of range throw at once. */
export const cron = {
  /** Every minute. */
  everyMinute: <Task extends CronTask>(task: Task): CronEntry<Task> => entryFor(task, "* * * * *"),

  /** Every hour at the minutes 0, n, 2n and so on. */
  everyMinutes: <Task extends CronTask>(task: Task, n: number): CronEntry<Task> =>
    entryFor(task, `*/${wholeNumber("n", n, 1, 59)} * * * *`),

  /** Every hour at this minute. */
  hourlyAt: <Task extends CronTask>(task: Task, minute: number): CronEntry<Task> =>
    entryFor(task, `${minuteOf(minute)} * * * *`),

  /** Every day at this time. */
  dailyAt: <Task extends CronTask>(task: Task, hour: number, minute: number): CronEntry<Task> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} * * *`),

  /** Every week at this time. `day` is a name, or a number from 0 (Sunday) to 7 (Sunday again). */
  weeklyOn: <Task extends CronTask>(task: Task, day: Weekday | number, hour: number, minute: number): CronEntry<Task> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} * * ${weekdayOf(day)}`),

  /** Every month at this time. Months without such a day are skipped. */
  monthlyOn: <Task extends CronTask>(task: Task, day: number, hour: number, minute: number): CronEntry<Task> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} ${wholeNumber("day", day, 1, 31)} * *`),

  /** Every year at this time. 29 February runs in leap years only. */
  yearlyOn: <Task extends CronTask>(
    task: Task,
    month: number,
    day: number,
    hour: number,
    minute: number,
  ): CronEntry<Task> => {
    const lastDay = longestMonths[wholeNumber("month", month, 1, 12) - 1]!;
    return entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} ${wholeNumber("day", day, 1, lastDay)} ${month} *`);
  },

  /** Whenever a crontab pattern matches, or a function returns true for a minute. */
  matching: <Task extends CronTask>(task: Task, match: string | CronMatcher): CronEntry<Task> => {
    parseCronItem({ task: taskNameOf(task), match }, "cron.matching call");
    return entryFor(task, match);
  },

  /** The next runs of an entry, soonest first. */
  next: nextRuns,
  /** The last runs of an entry, latest first. */
  previous: previousRuns,
};

function minuteOf(minute: number): number {
  return wholeNumber("minute", minute, 0, 59);
}

function hourOf(hour: number): number {
  return wholeNumber("hour", hour, 0, 23);
}

function weekdayOf(day: Weekday | number): number {
  if (typeof day === "number") return wholeNumber("day", day, 0, 7);
  const index = weekdays.indexOf(day);
  if (index < 0) throw new RangeError(`'day' of a cron entry must be one of ${weekdays.join(", ")}, got '${day}'.`);
  return index;
}
