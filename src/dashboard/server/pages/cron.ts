import { cron as cronTools, type KnownCrontab, type ParsedCronItem, type Pause } from "../../../index.ts";
import type { CronPage, CronRow, Warning } from "../../contract.ts";
import type { Desk, Page } from "../desk.ts";
import { readPauses } from "../figures.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause } from "../rows.ts";
import { describePattern } from "./cron-pattern.ts";

export const cron: Page<CronPage> = async (desk, { query }) => {
  new Fields(query, []);
  return { now: moment(new Date()), entries: await readCronRows(desk) };
};

/** How long after its time a run may be scheduled without counting as missed. */
const lateMs = 90_000;

export async function readCronRows(desk: Desk): Promise<CronRow[]> {
  const [known, pauses] = await Promise.all([readKnown(desk), readPauses(desk)]);
  const items = desk.cronItems.map((item) => rowOf(desk, item, known, pauses));
  const given = new Set(desk.cronItems.map(({ identifier }) => identifier));
  const others = known
    .filter(({ identifier }) => !given.has(identifier))
    .map(
      (entry): CronRow => ({
        identifier: entry.identifier,
        task: null,
        pattern: null,
        timeZone: null,
        next: [],
        knownSince: moment(entry.known_since),
        lastRunAt: moment(entry.last_execution),
        missedAt: null,
        pause: toPause(pauseOf(entry.identifier, pauses)),
        canRunNow: false,
      }),
    );
  const soonest = (row: CronRow): string => row.next[0]?.at ?? "9";
  return [...items.sort((a, b) => (soonest(a) < soonest(b) ? -1 : 1)), ...others];
}

/** Runs that no worker has scheduled. */
export async function findMissedRuns(desk: Desk): Promise<Warning[]> {
  if (desk.cronItems.length === 0) return [];
  const missed = (await readCronRows(desk)).filter(({ missedAt }) => missedAt !== null);
  return missed.map(({ identifier, missedAt }) => ({
    severity: "warning",
    kind: "missed-run",
    message: `The crontab entry ${identifier} was due at ${missedAt} and has not been scheduled.`,
    link: "cron",
  }));
}

function readKnown({ shelf, utils }: Desk): Promise<KnownCrontab[]> {
  return shelf.get("crontabs", 2_000, () => utils.listCrontabs());
}

function pauseOf(identifier: string, pauses: readonly Pause[]): Pause | null {
  return pauses.find(({ kind, name }) => kind === "cron" && name === identifier) ?? null;
}

function rowOf(desk: Desk, item: ParsedCronItem, known: readonly KnownCrontab[], pauses: readonly Pause[]): CronRow {
  const { identifier } = item;
  const entry = known.find((one) => one.identifier === identifier);
  const now = new Date();
  const next = cronTools.next(item, now, 5, desk.timeZone);
  const [last] = cronTools.previous(item, new Date(now.getTime() - lateMs), 1, desk.timeZone);
  const lastRun = entry?.last_execution?.getTime() ?? 0;
  const isMissed = entry && last && last.at.getTime() > Math.max(lastRun, entry.known_since.getTime());
  return {
    identifier,
    task: item.task,
    pattern: describePattern(item),
    timeZone: next[0]?.timeZone ?? item.options.timeZone ?? desk.timeZone ?? "UTC",
    next: next.map(({ at, localTime }) => ({ at: moment(at), localTime })),
    knownSince: moment(entry?.known_since),
    lastRunAt: moment(entry?.last_execution),
    missedAt: isMissed ? moment(last.at) : null,
    pause: toPause(pauseOf(identifier, pauses)),
    canRunNow: true,
  };
}
