import { fc, test as property } from "@fast-check/vitest";
import { expect, test } from "vitest";
import { cron } from "../../src/cron/cron.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";

test("the next runs carry the moment, the zone, the local time and the clock change", () => {
  const item = cron.dailyAt("a", 2, 30).timeZone("Europe/Berlin");
  expect(cron.next(item, new Date("2026-03-28T12:00:00Z"), 2)).toEqual([
    {
      at: new Date("2026-03-29T01:00:00Z"),
      timeZone: "Europe/Berlin",
      localTime: "2026-03-29T03:00:00+02:00",
      clockChange: "skipped",
    },
    {
      at: new Date("2026-03-30T00:30:00Z"),
      timeZone: "Europe/Berlin",
      localTime: "2026-03-30T02:30:00+02:00",
      clockChange: null,
    },
  ]);
  expect(cron.next(item, new Date("2026-10-24T12:00:00Z"))[0]).toMatchObject({
    localTime: "2026-10-25T02:30:00+02:00",
    clockChange: "repeated",
  });
});

test("a run at the given moment is neither next nor previous", () => {
  const item = cron.hourlyAt("a", 0);
  const noon = new Date("2026-01-01T12:00:00Z");
  expect(cron.next(item, noon)[0]!.at).toEqual(new Date("2026-01-01T13:00:00Z"));
  expect(cron.previous(item, noon)[0]!.at).toEqual(new Date("2026-01-01T11:00:00Z"));
});

test("previous runs come latest first, seconds included", () => {
  const item = cron.everyMinute("a").seconds("0,30");
  const runs = cron.previous(item, new Date("2026-01-01T00:01:00Z"), 3);
  expect(runs.map(({ at }) => at.toISOString().slice(11, 19))).toEqual(["00:00:30", "00:00:00", "23:59:30"]);
});

test("runs many years apart are found", () => {
  const item = cron.yearlyOn("a", 2, 29, 0, 0);
  const years = cron.next(item, new Date("2090-01-01T00:00:00Z"), 4).map(({ at }) => at.getUTCFullYear());
  expect(years).toEqual([2092, 2096, 2104, 2108]);
});

test("a pattern that never matches gives no runs", () => {
  expect(cron.next({ task: "a", match: "0 0 31 2 *" }, new Date(), 3)).toEqual([]);
  expect(cron.previous({ task: "a", match: "0 0 31 2 *" }, new Date(), 3)).toEqual([]);
});

test("a parsed line, a default zone and a count of nothing are fine", () => {
  const [item] = parseCrontab("0 8 * * * a");
  const from = new Date("2026-07-01T00:00:00Z");
  expect(cron.next(item!, from, 1, "Asia/Kolkata")[0]!.localTime).toBe("2026-07-01T08:00:00+05:30");
  expect(cron.next(item!, from, 0)).toEqual([]);
});

test("a senseless date or count is refused", () => {
  expect(() => cron.next(cron.everyMinute("a"), new Date("x"))).toThrow("'from' must be a valid date.");
  expect(() => cron.next(cron.everyMinute("a"), new Date(), 1.5)).toThrow("'count' must be a whole number");
});

property.prop(
  [
    fc.constantFrom("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"),
    fc.constantFrom("30 2 * * *", "*/25 1-3 * * 0", "0 0 1 * *", "15 * * * *", "45 1 29 2 1"),
    fc.date({ min: new Date("2020-01-01"), max: new Date("2030-01-01"), noInvalidDate: true }),
  ],
  { numRuns: 60 },
)("going forwards and back again meets the same runs", (zone, match, from) => {
  const item = { task: "a", match, options: { timeZone: zone } };
  const forwards = cron.next(item, from, 5);
  const past = new Date(forwards.at(-1)!.at.getTime() + 1);
  expect(cron.previous(item, past, 5).toReversed()).toEqual(forwards);
});
