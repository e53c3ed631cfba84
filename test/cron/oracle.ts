import type { CronMatcher, DstPolicy } from "../../src/cron/cron-item.ts";

const minutesPerDay = 1_440;
const nobody = -1;

/** A year of a zone's clock: for each local minute in turn, the first and last UTC minute that shows it. */
export interface WallClock {
  readonly firstMinute: number;
  readonly lastMinute: number;
  readonly firstLocal: number;
  readonly firstShown: Int32Array;
  readonly lastShown: Int32Array;
}

/** Built by asking `Intl` what the clock shows in every quarter of an hour. */
export function wallClock(timeZone: string, year: number): WallClock {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  });
  const shownAt = (minute: number): number => {
    const [day, month, shownYear, hour, min] = (format.format(minute * 60_000).match(/\d+/g) ?? []).map(Number);
    return Date.UTC(shownYear!, month! - 1, day!, hour!, min!) / 60_000;
  };
  const firstMinute = Date.UTC(year, 0, 1) / 60_000;
  const lastMinute = Date.UTC(year + 1, 0, 1) / 60_000 - 1;
  const firstLocal = shownAt(firstMinute);
  const firstShown = new Int32Array(shownAt(lastMinute) - firstLocal + 1).fill(nobody);
  const lastShown = firstShown.slice();
  for (let quarter = firstMinute; quarter < lastMinute; quarter += 15) {
    const local = shownAt(quarter) - firstLocal;
    for (let extra = 0; extra < 15; extra++) {
      if (firstShown[local + extra] === nobody) firstShown[local + extra] = quarter + extra;
      lastShown[local + extra] = quarter + extra;
    }
  }
  return { firstMinute, lastMinute, firstLocal, firstShown, lastShown };
}

/** Walks every local minute of the year, the skipped ones too, and says when each that matches should run. */
export function expectedRuns(clock: WallClock, match: CronMatcher, dst: DstPolicy, hours: string): number[] {
  const everyHour = hours === "*" || hours === "*/1";
  const skipped = dst.skipped ?? (everyHour ? "skip" : "run");
  const repeated = dst.repeated ?? (everyHour ? "both" : "first");
  const { firstLocal, firstShown, lastShown } = clock;
  const runs = new Set<number>();

  for (let index = 0; index < firstShown.length; index++) {
    if (!match(digestOf(firstLocal + index))) continue;
    const first = firstShown[index]!;
    const last = lastShown[index]!;
    if (first === nobody) {
      if (skipped === "run") runs.add(firstShown.subarray(index).find((moment) => moment !== nobody)!);
      continue;
    }
    if (repeated !== "last") runs.add(first);
    if (repeated !== "first") runs.add(last);
  }
  return [...runs].sort((a, b) => a - b);
}

let shownDay = Number.NaN;
let day = { date: 0, month: 0, dow: 0 };

function digestOf(local: number): Parameters<CronMatcher>[0] {
  const thisDay = Math.floor(local / minutesPerDay);
  if (thisDay !== shownDay) {
    const date = new Date(thisDay * minutesPerDay * 60_000);
    day = { date: date.getUTCDate(), month: date.getUTCMonth() + 1, dow: date.getUTCDay() };
    shownDay = thisDay;
  }
  const minuteOfDay = local - thisDay * minutesPerDay;
  return { min: minuteOfDay % 60, hour: Math.floor(minuteOfDay / 60), ...day };
}
