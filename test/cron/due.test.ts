import { fc, test as property } from "@fast-check/vitest";
import { describe, expect, test, vi } from "vitest";
import type { CronItemOptions, ParsedCronItem } from "../../src/cron/cron-item.ts";
import { dueTimes, isDue, localTime } from "../../src/cron/due.ts";
import { parseCronItem } from "../../src/cron/parse-cron-item.ts";
import { expectedRuns, type WallClock, wallClock } from "./oracle.ts";

// Much work for one test, and the machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

const minuteMs = 60_000;

function itemIn(timeZone: string, match: string, options: CronItemOptions = {}): ParsedCronItem {
  return parseCronItem({ task: "a", match, options: { timeZone, ...options } });
}

function runsBetween(item: ParsedCronItem, from: string, to: string): string[] {
  return dueTimes(item, new Date(from), new Date(to)).map(({ at }) => localTime(item, at));
}

describe("on the night Berlin's clocks jump from 02:00 to 03:00", () => {
  const night = ["2026-03-28T23:30:00Z", "2026-03-29T02:00:00Z"] as const;

  test("a skipped time runs once, at the moment of the change", () => {
    const runs = dueTimes(itemIn("Europe/Berlin", "30 2 * * *"), new Date(night[0]), new Date(night[1]));
    expect(runs).toEqual([{ at: new Date("2026-03-29T01:00:00Z"), clockChange: "skipped" }]);
  });

  test("several skipped times run once together", () => {
    expect(runsBetween(itemIn("Europe/Berlin", "*/10 2 * * *"), ...night)).toEqual(["2026-03-29T03:00:00+02:00"]);
  });

  test("'skipped: skip' leaves them out", () => {
    expect(runsBetween(itemIn("Europe/Berlin", "30 2 * * *", { dst: { skipped: "skip" } }), ...night)).toEqual([]);
  });

  test("an entry for every hour goes on as time passes", () => {
    expect(runsBetween(itemIn("Europe/Berlin", "30 * * * *"), ...night)).toEqual([
      "2026-03-29T01:30:00+01:00",
      "2026-03-29T03:30:00+02:00",
    ]);
  });
});

describe("on the night Berlin's clocks go back from 03:00 to 02:00", () => {
  const night = ["2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z"] as const;
  const first = "2026-10-25T02:30:00+02:00";
  const second = "2026-10-25T02:30:00+01:00";

  test.each([
    [undefined, [first]],
    ["first", [first]],
    ["last", [second]],
    ["both", [first, second]],
  ] as const)("a repeated time with policy %s runs at %o", (repeated, expected) => {
    expect(runsBetween(itemIn("Europe/Berlin", "30 2 * * *", { dst: { repeated } }), ...night)).toEqual(expected);
  });

  test("an entry for every hour goes on as time passes", () => {
    expect(runsBetween(itemIn("Europe/Berlin", "30 * * * *"), ...night)).toEqual([first, second]);
  });

  test("an entry for every hour may be told to run a repeated time once", () => {
    const item = itemIn("Europe/Berlin", "30 * * * *", { dst: { repeated: "first" } });
    expect(runsBetween(item, ...night)).toEqual([first]);
  });
});

test("Lord Howe Island moves by half an hour", () => {
  const spring = itemIn("Australia/Lord_Howe", "15 2 * * *");
  expect(runsBetween(spring, "2026-10-03T14:00:00Z", "2026-10-03T17:00:00Z")).toEqual(["2026-10-04T02:30:00+11:00"]);
  const autumn = itemIn("Australia/Lord_Howe", "45 1 * * *", { dst: { repeated: "both" } });
  expect(runsBetween(autumn, "2026-04-04T14:00:00Z", "2026-04-04T17:00:00Z")).toEqual([
    "2026-04-05T01:45:00+11:00",
    "2026-04-05T01:45:00+10:30",
  ]);
});

test("a day that Samoa skipped runs once when the next one begins", () => {
  const item = itemIn("Pacific/Apia", "0 12 30 12 *");
  expect(runsBetween(item, "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z")).toEqual(["2011-12-31T00:00:00+14:00"]);
});

test("without a zone, an item runs in UTC or in the default zone it is asked about", () => {
  const item = parseCronItem({ task: "a", match: "0 8 * * *" });
  expect(isDue(item, new Date("2026-07-01T08:00:00Z"))).toBe(true);
  expect(isDue(item, new Date("2026-07-01T08:00:00Z"), "Asia/Kolkata")).toBe(false);
  expect(isDue(item, new Date("2026-07-01T02:30:00Z"), "Asia/Kolkata")).toBe(true);
});

test("a matcher function sees the local time, skipped minutes included", () => {
  const seen: string[] = [];
  const match = ({ hour, min }: { hour: number; min: number }): boolean => {
    seen.push(`${hour}:${min}`);
    return hour === 2 && min === 30;
  };
  const item = parseCronItem({ task: "a", match, options: { timeZone: "Europe/Berlin" } });
  expect(isDue(item, new Date("2026-03-29T01:00:00Z"))).toBe(true);
  expect(seen.at(0)).toBe("3:0");
  expect(seen.at(-1)).toBe("2:30");
});

test("seconds are taken within each matching minute, and the bounds are exclusive and inclusive", () => {
  const item = parseCronItem({ task: "a", match: "*/2 * * * *", options: { seconds: "*/30" } });
  const times = dueTimes(item, new Date("2026-01-01T00:00:00Z"), new Date("2026-01-01T00:02:30Z"));
  expect(times.map(({ at }) => at.toISOString().slice(14, 19))).toEqual(["00:30", "02:00", "02:30"]);
});

const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"];
const years = [2023, 2025, 2026];
const clocks = new Map<string, WallClock>();
function clockOf(zone: string, year: number): WallClock {
  const key = `${zone} ${year}`;
  const known = clocks.get(key) ?? wallClock(zone, year);
  clocks.set(key, known);
  return known;
}

const pick = (max: number, min = 0): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant("*"),
    fc.integer({ min, max }).map(String),
    fc.integer({ min: 1, max: Math.ceil(max / 2) }).map((step) => `*/${step}`),
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 2, maxLength: 4 }).map((values) => values.join(",")),
  );
/** Clock changes happen at night, so most patterns should look there. */
const hours = fc.oneof(pick(23), fc.constantFrom("0", "1", "2", "3", "1,2", "2-3", "0-4", "1-3"));
const patterns = fc.tuple(pick(59), hours, pick(31, 1), pick(12, 1), pick(6)).map((fields) => fields.join(" "));
const policies = fc.record(
  {
    skipped: fc.constantFrom("run" as const, "skip" as const),
    repeated: fc.constantFrom("first" as const, "last" as const, "both" as const),
  },
  { requiredKeys: [] },
);

property.prop([fc.constantFrom(...zones), fc.constantFrom(...years), patterns, policies], { numRuns: 40 })(
  "over a year, an item runs exactly when an oracle that walks every local minute says so",
  (zone, year, pattern, dst) => {
    const item = itemIn(zone, pattern, { dst });
    const clock = clockOf(zone, year);
    const expected = expectedRuns(clock, item.match, dst, pattern.split(" ")[1]!);
    const from = new Date((clock.firstMinute - 1) * minuteMs);
    const until = new Date(clock.lastMinute * minuteMs);
    const found = dueTimes(item, from, until).map(({ at }) => at.getTime() / minuteMs);
    expect(found).toEqual(expected);
  },
  120_000,
);

property.prop([fc.constantFrom(...zones), patterns, policies, fc.integer({ min: 0, max: 364 })], { numRuns: 40 })(
  "asking minute by minute gives the same runs as asking for a span",
  (zone, pattern, dst, day) => {
    const item = itemIn(zone, pattern, { dst });
    const start = Date.UTC(2026, 0, 1 + day);
    const asked: number[] = [];
    for (let at = start; at < start + 2 * 86_400_000; at += minuteMs) if (isDue(item, new Date(at))) asked.push(at);
    const spanned = dueTimes(item, new Date(start - minuteMs), new Date(start + 2 * 86_400_000 - minuteMs));
    expect(spanned.map(({ at }) => at.getTime())).toEqual(asked);
  },
  120_000,
);
