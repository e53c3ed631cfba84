import { cron as cronTools, type KnownCrontab, type ParsedCronItem, type Pause } from "../../../index.ts";
import type { CronPage, CronRow, Warning } from "../../contract.ts";
import type { DashboardContext, Page } from "../context.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause } from "../rows.ts";
import { readPauses } from "../shared-reads.ts";
import { describePattern } from "./cron-pattern.ts";

export const cron: Page<CronPage> = async (context, { query }) => {
  new Fields(query, []);
  return { now: moment(new Date()), entries: await readCronRows(context) };
};

/** How long after its time a run may be scheduled without counting as missed. */
const lateMs = 90_000;

export async function readCronRows(context: DashboardContext): Promise<CronRow[]> {
  const [known, pauses] = await Promise.all([readKnown(context), readPauses(context)]);
  const items = context.cronItems.map((item) => rowOf(context, item, known, pauses));
  const given = new Set(context.cronItems.map(({ identifier }) => identifier));
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
export async function findMissedRuns(context: DashboardContext): Promise<Warning[]> {
  if (context.cronItems.length === 0) return [];
  const missed = (await readCronRows(context)).filter(({ missedAt }) => missedAt !== null);
  return missed.map(({ identifier, missedAt }) => ({
    severity: "warning",
    kind: "missed-run",
    message: `The crontab entry ${identifier} was due at ${missedAt} and has not been scheduled.`,
    link: "cron",
  }));
}

function readKnown({ cache, utils }: DashboardContext): Promise<KnownCrontab[]> {
  return cache.get("crontabs", 2_000, () => utils.listCrontabs());
}

function pauseOf(identifier: string, pauses: readonly Pause[]): Pause | null {
  return pauses.find(({ kind, name }) => kind === "cron" && name === identifier) ?? null;
}

function rowOf(
  context: DashboardContext,
  item: ParsedCronItem,
  known: readonly KnownCrontab[],
  pauses: readonly Pause[],
): CronRow {
  const { identifier } = item;
  const entry = known.find((one) => one.identifier === identifier);
  const now = new Date();
  const next = cronTools.next(item, now, 5, context.timeZone);
  const [last] = cronTools.previous(item, new Date(now.getTime() - lateMs), 1, context.timeZone);
  const lastRun = entry?.last_execution?.getTime() ?? 0;
  const isMissed = entry && last && last.at.getTime() > Math.max(lastRun, entry.known_since.getTime());
  return {
    identifier,
    task: item.task,
    pattern: describePattern(item),
    timeZone: next[0]?.timeZone ?? item.options.timeZone ?? context.timeZone ?? "UTC",
    next: next.map(({ at, localTime }) => ({ at: moment(at), localTime })),
    knownSince: moment(entry?.known_since),
    lastRunAt: moment(entry?.last_execution),
    missedAt: isMissed ? moment(last.at) : null,
    pause: toPause(pauseOf(identifier, pauses)),
    canRunNow: true,
  };
}
