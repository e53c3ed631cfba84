import type { KnownCrontab } from "../db/statements/cron.ts";
import { ceilToMinute } from "./clock.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { type DueTime, eachDue } from "./due.ts";

/** Runs at one moment that were missed, in the order of the items. */
export interface MissedRuns {
  readonly at: Date;
  readonly runs: readonly { readonly item: ParsedCronItem; readonly known: KnownCrontab }[];
}

/** What is to be caught up on before `start`, oldest first. Only entries that were known before can have missed anything. */
export function findMissedRuns(
  items: readonly ParsedCronItem[],
  known: readonly KnownCrontab[],
  start: Date,
  timeZone?: string,
): MissedRuns[] {
  const knownByIdentifier = new Map(known.map((crontab) => [crontab.identifier, crontab]));
  const runsByTime = new Map<number, MissedRuns["runs"][number][]>();
  for (const item of items) {
    const crontab = knownByIdentifier.get(item.identifier);
    if (!crontab) continue;
    for (const { at } of missedTimes(item, crontab, start, timeZone)) {
      const run = { item, known: crontab };
      const others = runsByTime.get(at.getTime());
      if (others) others.push(run);
      else runsByTime.set(at.getTime(), [run]);
    }
  }
  return [...runsByTime].sort(([a], [b]) => a - b).map(([time, runs]) => ({ at: new Date(time), runs }));
}

function missedTimes(item: ParsedCronItem, known: KnownCrontab, start: Date, timeZone?: string): DueTime[] {
  const { missed, backfillPeriod } = item.options;
  const looksBack = missed === "all" || missed === "last" || (missed === undefined && backfillPeriod > 0);
  if (!looksBack) return [];

  // The first moment that counts: `known_since` itself may be missed, `last_execution` never is.
  const unseen = known.last_execution ? known.last_execution.getTime() + 1 : known.known_since.getTime();
  const within = backfillPeriod > 0 ? firstWithin(start, backfillPeriod, item) : unseen;
  const before = new Date(Math.max(unseen, within) - 1);
  const last = new Date(start.getTime() - 1);
  if (before >= last) return [];
  if (missed !== "last") return [...eachDue(item, { from: before, until: last }, timeZone)];
  const [latest] = eachDue(item, { from: start, until: new Date(before.getTime() + 1) }, timeZone);
  return latest ? [latest] : [];
}

function firstWithin(start: Date, periodMs: number, item: ParsedCronItem): number {
  const earliest = start.getTime() - periodMs;
  return item.options.seconds ? earliest : ceilToMinute(earliest);
}
