import type { CronMatcher, ParsedCronItem, PatternMatcher, TimestampDigest } from "./cron-item.ts";
import { createDayMatcher } from "./cron-match.ts";
import { findTimeZone, formatLocalTime, type TimeZone } from "./time-zone.ts";

const msPerMinute = 60_000;
const minutesPerDay = 1_440;
const justTheMinute = [0];

/** How a clock change shaped a run: it stands in for a skipped local time, or its local time comes twice. */
export type ClockChange = "skipped" | "repeated";

/** A run an item is due for. */
export interface DueTime {
  readonly at: Date;
  readonly clockChange: ClockChange | null;
}

/** The zone an item's pattern is read in. */
export function zoneOf(item: ParsedCronItem, defaultTimeZone = "UTC"): TimeZone {
  return findTimeZone(item.options.timeZone ?? defaultTimeZone);
}

/** What the clock of the item's zone shows: `2026-03-29T03:00:00+02:00`. */
export function localTime(item: ParsedCronItem, instant: Date, defaultTimeZone?: string): string {
  return formatLocalTime(zoneOf(item, defaultTimeZone), instant.getTime());
}

/** Whether the item has a run at this very moment. */
export function isDue(item: ParsedCronItem, instant: Date, defaultTimeZone?: string): boolean {
  const due = dueTimesOfMinute(schedule(item, defaultTimeZone), minuteOf(instant));
  return due.some(({ at }) => at.getTime() === instant.getTime());
}

/** The runs after `fromExclusive` up to `toInclusive`, in order. */
export function dueTimes(
  item: ParsedCronItem,
  fromExclusive: Date,
  toInclusive: Date,
  defaultTimeZone?: string,
): DueTime[] {
  return [...eachDue(item, { from: fromExclusive, until: toInclusive }, defaultTimeZone)];
}

/** Runs after `from` up to `until`; or, if `until` is the earlier one, the runs before `from` down to it. */
export interface Span {
  readonly from: Date;
  readonly until: Date;
}

/** The runs of a span, one by one, in the direction of the span. */
export function* eachDue(item: ParsedCronItem, { from, until }: Span, defaultTimeZone?: string): Generator<DueTime> {
  const plan = schedule(item, defaultTimeZone);
  const step = until >= from ? 1 : -1;
  const lastDay = dayOf(until);
  for (let day = dayOf(from); step * (lastDay - day) >= 0; day += step) {
    if (!mayMatchDay(plan, day)) continue;
    for (const due of dueTimesOfDay(plan, day, minuteOf(from), step)) {
      if (step * (due.at.getTime() - from.getTime()) <= 0) continue;
      if (step * (until.getTime() - due.at.getTime()) < 0) return;
      yield due;
    }
  }
}

function minuteOf(instant: Date): number {
  return Math.floor(instant.getTime() / msPerMinute);
}

function dayOf(instant: Date): number {
  return Math.floor(minuteOf(instant) / minutesPerDay);
}

interface Schedule {
  readonly zone: TimeZone;
  readonly match: CronMatcher;
  readonly runsSkipped: boolean;
  readonly repeated: "first" | "last" | "both";
  readonly seconds: readonly number[];
  readonly matchesDay: ReturnType<typeof createDayMatcher> | undefined;
}

function schedule(item: ParsedCronItem, defaultTimeZone: string | undefined): Schedule {
  const { dst, seconds } = item.options;
  const parsed = (item.match as Partial<PatternMatcher>).parsedCronMatch;
  // What runs in every hour has no time of day to lose or to repeat: it follows the passing of time.
  const isEveryHour = parsed?.hours.length === 24;
  return {
    zone: zoneOf(item, defaultTimeZone),
    match: item.match,
    runsSkipped: (dst?.skipped ?? (isEveryHour ? "skip" : "run")) === "run",
    repeated: dst?.repeated ?? (isEveryHour ? "both" : "first"),
    seconds: seconds ?? justTheMinute,
    matchesDay: parsed && createDayMatcher(parsed),
  };
}

/** Whether there is a run in this minute: `undefined` if not, else how the clock change shaped it. */
function judge(plan: Schedule, minute: number): ClockChange | null | undefined {
  const { zone, match, repeated } = plan;
  const local = zone.localMinute(minute);
  if (match(digestOf(local))) {
    const twin = zone.findTwin(minute);
    if (twin === undefined) return null;
    if (repeated === "both" || (repeated === "first") === minute < twin) return "repeated";
  }
  return plan.runsSkipped && standsInForSkipped(plan, minute, local) ? "skipped" : undefined;
}

function standsInForSkipped({ zone, match }: Schedule, minute: number, local: number): boolean {
  for (let skipped = zone.localMinute(minute - 1) + 1; skipped < local; skipped++) {
    if (match(digestOf(skipped))) return true;
  }
  return false;
}

/** A quick no for most days; local days reach over the edges of UTC's, and a change may skip a whole one. */
function mayMatchDay({ zone, matchesDay }: Schedule, day: number): boolean {
  if (!matchesDay) return true;
  const first = Math.floor(zone.localMinute(day * minutesPerDay - 1) / minutesPerDay);
  const last = Math.floor(zone.localMinute((day + 1) * minutesPerDay - 1) / minutesPerDay);
  for (let localDay = first; localDay <= last; localDay++) {
    const { date, month, dow } = digestOf(localDay * minutesPerDay);
    if (matchesDay(date, month, dow)) return true;
  }
  return false;
}

/** The runs of a UTC day in the direction of `step`, beginning with the minute `from` if that is on this day. */
function* dueTimesOfDay(plan: Schedule, day: number, from: number, step: 1 | -1): Generator<DueTime> {
  const first = day * minutesPerDay;
  const last = first + minutesPerDay - 1;
  const begin = step === 1 ? Math.max(first, from) : Math.min(last, from);
  for (let minute = begin; minute >= first && minute <= last; minute += step) {
    const due = dueTimesOfMinute(plan, minute);
    yield* step === 1 ? due : due.toReversed();
  }
}

function dueTimesOfMinute(plan: Schedule, minute: number): DueTime[] {
  const clockChange = judge(plan, minute);
  if (clockChange === undefined) return [];
  // What stands in for skipped times runs at the very moment of the change.
  const seconds = clockChange === "skipped" ? justTheMinute : plan.seconds;
  return seconds.map((second) => ({ at: new Date(minute * msPerMinute + second * 1_000), clockChange }));
}

function digestOf(localMinute: number): TimestampDigest {
  const shown = new Date(localMinute * msPerMinute);
  return {
    min: shown.getUTCMinutes(),
    hour: shown.getUTCHours(),
    date: shown.getUTCDate(),
    month: shown.getUTCMonth() + 1,
    dow: shown.getUTCDay(),
  };
}
