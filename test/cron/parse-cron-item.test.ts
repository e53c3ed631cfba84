import { expect, test } from "vitest";
import { $$isParsed, type CronItem } from "../../src/cron/cron-item.ts";
import { CrontabError } from "../../src/cron/crontab-error.ts";
import { parseCronItem, parseCronItems } from "../../src/cron/parse-cron-item.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";

test("a bare item gets an empty payload, its task as identifier and no back-fill", () => {
  expect(parseCronItem({ task: "a", match: "* * * * *" })).toStrictEqual({
    [$$isParsed]: true,
    match: expect.any(Function),
    task: "a",
    options: { backfillPeriod: 0 },
    payload: {},
    identifier: "a",
  });
});

test("given options, payload, identifier and matcher function are kept", () => {
  const match = (): boolean => true;
  const item = parseCronItem({ task: "a", match, options: { maxAttempts: 3 }, payload: { x: 1 }, identifier: "z" });
  expect(item).toMatchObject({
    match,
    options: { maxAttempts: 3, backfillPeriod: 0 },
    payload: { x: 1 },
    identifier: "z",
  });
});

test("the older 'pattern' means the same as 'match'", () => {
  const item = parseCronItem({ task: "a", pattern: "5 * * * *" });
  expect(item.match({ min: 5, hour: 1, date: 1, month: 1, dow: 1 })).toBe(true);
});

test("a parsed item may be parsed again and stays as it is", () => {
  const [parsed] = parseCrontab("* * * * * a ?seconds=5&tz=Asia/Kolkata");
  expect(parseCronItem(parsed!)).toStrictEqual(parsed);
});

test("items are parsed in order and may share an identifier", () => {
  const items = parseCronItems([
    { task: "a", match: "* * * * *" },
    { task: "a", match: "@daily", options: { seconds: "0,30" } },
  ]);
  expect(items.map((item) => item.options.seconds)).toEqual([undefined, [0, 30]]);
});

test.each<[Partial<Record<keyof CronItem, unknown>>, string]>([
  [{ match: 5 }, "Invalid 'match' configuration"],
  [{}, "Invalid 'match' configuration"],
  [{ match: "foo" }, "Invalid cron pattern 'foo' in parseCronItem call"],
  [{ match: "* * * * * " }, "Invalid cron pattern '* * * * * ' in parseCronItem call"],
  [{ match: "* * * * * task" }, "Invalid cron pattern '* * * * * task' in parseCronItem call"],
  [{ match: "@often" }, "Invalid cron pattern '@often' in parseCronItem call"],
  [
    { match: "60 * * * *" },
    "Too large value '60' in minutes range in parseCronItem call: expected values in the range 0-59.",
  ],
  [{ match: "@daily", options: { timeZone: "Mars/Base" } }, "Invalid 'timeZone' in parseCronItem call"],
  [{ match: "@daily", options: { dst: { skipped: "first" } } }, "Invalid 'dst.skipped'"],
  [{ match: "@daily", options: { missed: "never" } }, "Invalid 'missed'"],
  [{ match: "@daily", options: { missed: "none", backfillPeriod: 1 } }, "keep one of them"],
  [{ match: "@daily", options: { overlap: "maybe" } }, "Invalid 'overlap'"],
  [{ match: "@daily", options: { seconds: "61" } }, "Invalid 'seconds'"],
])("%o is refused", (item, phrase) => {
  expect(() => parseCronItem({ task: "a", ...item } as CronItem)).toThrow(phrase);
});

test("all faults of an item are named, with the given source", () => {
  try {
    parseCronItem({ task: "a", match: "60 24 * * *", options: { timeZone: "x" } }, "cron[3]");
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(CrontabError);
    expect((error as CrontabError).problems.map((problem) => problem.text)).toEqual(["60", "24", "x"]);
    expect((error as CrontabError).message).toContain("in cron[3]");
  }
});

test.each([
  [
    { timeZone: "Europe/Berlin" },
    "Unknown key 'timeZone' in parseCronItem call. Did you mean 'options: { timeZone }'?",
  ],
  [
    { timezone: "Europe/Berlin" },
    "Unknown key 'timezone' in parseCronItem call. Did you mean 'options: { timeZone }'?",
  ],
  [{ identifer: "x" }, "Unknown key 'identifer' in parseCronItem call. Did you mean 'identifier'?"],
  [{ options: { timezone: "UTC" } }, "Unknown key 'options.timezone' in parseCronItem call. Did you mean 'timeZone'?"],
  [{ options: { maxAttempts: 0 } }, "Invalid 'maxAttempts' in parseCronItem call: expected a whole number from 1 to"],
  [{ options: { priority: 99_999 } }, "Invalid 'priority' in parseCronItem call: expected a whole number from -32768"],
])("%o is refused", (rest, message) => {
  const parse = () => parseCronItem({ task: "a", match: "* * * * *", ...rest } as CronItem);
  expect(parse).toThrow(CrontabError);
  expect(parse).toThrow(message);
});

test("keys that are like none of ours are left alone", () => {
  const item = { task: "a", match: "* * * * *", desc: "nightly", owner: "ops", options: { note: "x" } } as CronItem;
  expect(parseCronItem(item).task).toBe("a");
});
