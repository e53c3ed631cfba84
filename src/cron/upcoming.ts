import { expectWholeNumber } from "../util/whole-number.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { type ClockChange, eachDue, zoneOf } from "./due.ts";
import { type CronItemInput, parseCronItem } from "./parse-cron-item.ts";
import { formatLocalTime } from "./time-zone.ts";

/** One run of an item: the moment, and what the clock of its zone shows then. */
export interface CronRun {
  readonly at: Date;
  readonly timeZone: string;
  /** ISO 8601 with the zone's offset: `2026-03-29T03:00:00+02:00`. */
  readonly localTime: string;
  /** `skipped`: stands in for a local time the clocks jumped over. `repeated`: the local time comes twice. */
  readonly clockChange: ClockChange | null;
}

/** A pattern that is silent for nine years never runs: even leap days are at most eight years apart. */
const horizonMs = 9 * 366 * 86_400_000;

/** The next runs after `from`, soonest first. Fewer than `count` only if the item never runs again. */
export function nextRuns(item: CronItemInput, from = new Date(), count = 1, defaultTimeZone?: string): CronRun[] {
  return collectRuns(parseCronItem(item), from, count, horizonMs, defaultTimeZone);
}

/** The runs before `from`, latest first. */
export function previousRuns(item: CronItemInput, from = new Date(), count = 1, defaultTimeZone?: string): CronRun[] {
  return collectRuns(parseCronItem(item), from, count, -horizonMs, defaultTimeZone);
}

function collectRuns(
  item: ParsedCronItem,
  from: Date,
  count: number,
  horizon: number,
  defaultTimeZone: string | undefined,
): CronRun[] {
  if (Number.isNaN(from.getTime())) throw new RangeError("'from' must be a valid date.");
  const expected = expectWholeNumber(count, 0);
  if (expected) throw new RangeError(`'count' must be ${expected}, got ${String(count)}.`);
  const zone = zoneOf(item, defaultTimeZone);
  const runs: CronRun[] = [];
  let start = from;
  while (runs.length < count) {
    const span = { from: start, until: new Date(start.getTime() + horizon) };
    for (const { at, clockChange } of eachDue(item, span, defaultTimeZone)) {
      runs.push({ at, timeZone: zone.name, localTime: formatLocalTime(zone, at.getTime()), clockChange });
      if (runs.length === count) break;
    }
    const last = runs.at(-1)?.at ?? start;
    if (last === start) break;
    start = last;
  }
  return runs;
}
