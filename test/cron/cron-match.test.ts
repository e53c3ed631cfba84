import { fc, test as property } from "@fast-check/vitest";
import { expect, test } from "vitest";
import type { TimestampDigest } from "../../src/cron/cron-item.ts";
import { parseCronItem } from "../../src/cron/parse-cron-item.ts";

function matches(pattern: string, digest: Partial<TimestampDigest>): boolean {
  return parseCronItem({ task: "a", match: pattern }).match({ min: 0, hour: 0, date: 1, month: 1, dow: 4, ...digest });
}

test.each([
  ["a restricted date and weekday: either is enough", "0 0 13 * 5", { date: 13, dow: 2 }, true],
  ["a restricted date and weekday: either is enough", "0 0 13 * 5", { date: 14, dow: 5 }, true],
  ["a restricted date and weekday: one is needed", "0 0 13 * 5", { date: 14, dow: 2 }, false],
  ["a full range of dates restricts nothing", "0 0 1-31 * 5", { date: 14, dow: 2 }, false],
  ["'*/1' of weekdays restricts nothing", "0 0 13 * */1", { date: 14, dow: 2 }, false],
  ["weekdays 1-7 are all of them", "0 0 13 * 1-7", { date: 14, dow: 2 }, false],
  ["weekday 7 is Sunday", "0 0 * * 7", { dow: 0 }, true],
  ["the month always counts", "0 0 13 2 5", { date: 13, dow: 5, month: 3 }, false],
])("%s (%s, %o)", (_, pattern, digest, expected) => {
  expect(matches(pattern, digest)).toBe(expected);
});

const field = (
  min: number,
  max: number,
): fc.Arbitrary<{ text: string; holds: (value: number) => boolean; isFull: boolean }> => {
  const number = fc.integer({ min, max });
  const part = fc.oneof(
    fc.constant({ text: "*", holds: () => true }),
    number.map((n) => ({ text: `${n}`, holds: (value: number) => value === n })),
    fc.integer({ min: 1, max: 70 }).map((n) => ({ text: `*/${n}`, holds: (value: number) => (value - min) % n === 0 })),
    fc
      .tuple(number, number)
      .filter(([from, to]) => from < to)
      .map(([from, to]) => ({ text: `${from}-${to}`, holds: (value: number) => value >= from && value <= to })),
    fc
      .tuple(number, number, fc.integer({ min: 1, max: 9 }))
      .filter(([from, to]) => from < to)
      .map(([from, to, n]) => ({
        text: `${from}-${to}/${n}`,
        holds: (value: number) => value >= from && value <= to && (value - from) % n === 0,
      })),
  );
  return fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => {
    const holds = (value: number): boolean => parts.some((one) => one.holds(value));
    let isFull = true;
    for (let value = min; value <= max; value++) isFull &&= holds(value);
    return { text: parts.map((one) => one.text).join(","), holds, isFull };
  });
};

property.prop([
  field(0, 59),
  field(0, 23),
  field(1, 31),
  field(1, 12),
  field(0, 6),
  fc.date({ min: new Date("2000-01-01"), max: new Date("2040-01-01"), noInvalidDate: true }),
])(
  "a pattern matches exactly when its fields, read one by one, say so",
  (minutes, hours, dates, months, dows, moment) => {
    const pattern = [minutes, hours, dates, months, dows].map((one) => one.text).join(" ");
    const { match } = parseCronItem({ task: "a", match: pattern });
    const digest = {
      min: moment.getUTCMinutes(),
      hour: moment.getUTCHours(),
      date: moment.getUTCDate(),
      month: moment.getUTCMonth() + 1,
      dow: moment.getUTCDay(),
    };
    const byDate = dates.holds(digest.date);
    const byDow = dows.holds(digest.dow);
    const isDay = dates.isFull || dows.isFull ? byDate && byDow : byDate || byDow;
    const expected = minutes.holds(digest.min) && hours.holds(digest.hour) && months.holds(digest.month) && isDay;
    expect(match(digest)).toBe(expected);
  },
);
