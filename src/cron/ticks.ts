import { ceilToMinute, nextMinute } from "./clock.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { eachDue } from "./due.ts";

interface Ticking {
  readonly items: readonly ParsedCronItem[];
  readonly timeZone?: string | undefined;
}

/** The first moment from `start` on at which the scheduler has to look. */
export function findFirstTick(ticking: Ticking, start: number): number {
  return findTick(ticking, start - 1, ceilToMinute(start));
}

/** The first such moment after `tick`. */
export function findNextTick(ticking: Ticking, tick: number): number {
  return findTick(ticking, tick, nextMinute(tick));
}

/** Every minute has its tick; items with seconds bring further ones. */
function findTick({ items, timeZone }: Ticking, after: number, minute: number): number {
  let earliest = minute;
  for (const item of items) {
    if (!item.options.seconds) continue;
    const next = eachDue(item, { from: new Date(after), until: new Date(earliest) }, timeZone).next();
    if (!next.done) earliest = next.value.at.getTime();
  }
  return earliest;
}
