import type { TaskName } from "../job.ts";
import { type CronEntry, entryFor, wholeNumber } from "./cron-entry.ts";
import type { CronMatcher } from "./cron-item.ts";
import { parseCronItem } from "./parse-cron-item.ts";
import { nextRuns, previousRuns } from "./upcoming.ts";

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
export type Weekday = (typeof weekdays)[number];
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Recurring jobs in code, and when they run. Values that are out of range throw where they are written. */
export const cron = {
  everyMinute: <Name extends TaskName>(task: Name): CronEntry<Name> => entryFor(task, "* * * * *"),

  /** In every hour at the minutes 0, n, 2n and so on. */
  everyMinutes: <Name extends TaskName>(task: Name, n: number): CronEntry<Name> =>
    entryFor(task, `*/${wholeNumber("n", n, 1, 59)} * * * *`),

  hourlyAt: <Name extends TaskName>(task: Name, minute: number): CronEntry<Name> =>
    entryFor(task, `${minuteOf(minute)} * * * *`),

  dailyAt: <Name extends TaskName>(task: Name, hour: number, minute: number): CronEntry<Name> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} * * *`),

  /** `day` is a name, or a number from 0 (Sunday) to 7 (Sunday again). */
  weeklyOn: <Name extends TaskName>(task: Name, day: Weekday | number, hour: number, minute: number): CronEntry<Name> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} * * ${weekdayOf(day)}`),

  /** A month that has no such day is left out. */
  monthlyOn: <Name extends TaskName>(task: Name, day: number, hour: number, minute: number): CronEntry<Name> =>
    entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} ${wholeNumber("day", day, 1, 31)} * *`),

  /** 29 February runs in leap years only. */
  yearlyOn: <Name extends TaskName>(
    task: Name,
    month: number,
    day: number,
    hour: number,
    minute: number,
  ): CronEntry<Name> => {
    const lastDay = longestMonths[wholeNumber("month", month, 1, 12) - 1]!;
    return entryFor(task, `${minuteOf(minute)} ${hourOf(hour)} ${wholeNumber("day", day, 1, lastDay)} ${month} *`);
  },

  /** Any pattern, or a function that says whether a minute matches. */
  matching: <Name extends TaskName>(task: Name, match: string | CronMatcher): CronEntry<Name> => {
    parseCronItem({ task, match }, "cron.matching call");
    return entryFor(task, match);
  },

  next: nextRuns,
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
