import { describe, expect, expectTypeOf, test } from "vitest";
import { cron } from "../../src/cron/cron.ts";
import type { CronEntry, CronPayloadOf } from "../../src/cron/cron-entry.ts";
import { parseCronItem, parseCronItems } from "../../src/cron/parse-cron-item.ts";
import { defineTask } from "../../src/tasks/define-task.ts";

test.each([
  [cron.everyMinute("a"), "* * * * *"],
  [cron.everyMinutes("a", 5), "*/5 * * * *"],
  [cron.hourlyAt("a", 15), "15 * * * *"],
  [cron.dailyAt("a", 8, 30), "30 8 * * *"],
  [cron.weeklyOn("a", "monday", 8, 30), "30 8 * * 1"],
  [cron.weeklyOn("a", 7, 8, 30), "30 8 * * 7"],
  [cron.monthlyOn("a", 31, 0, 0), "0 0 31 * *"],
  [cron.yearlyOn("a", 2, 29, 23, 59), "59 23 29 2 *"],
  [cron.matching("a", "@daily"), "@daily"],
])("entry %# reads as a pattern", (entry, match) => {
  expect(entry.build()).toMatchObject({ task: "a", match });
});

test("an entry carries everything it was told", () => {
  const item = parseCronItem(
    cron
      .dailyAt("report", 8, 0)
      .id("daily")
      .fill({ days: 1, hours: 1 })
      .maxAttempts(3)
      .queue("reports")
      .priority(-5)
      .jobKey("key")
      .jobKeyMode("preserve_run_at")
      .payload({ to: "all" })
      .timeZone("Europe/Berlin")
      .dst({ skipped: "skip" })
      .missed("last")
      .overlap("skip")
      .flags("mail", "slow")
      .seconds("*/30"),
  );
  expect(item).toMatchObject({
    task: "report",
    identifier: "daily",
    payload: { to: "all" },
    options: {
      backfillPeriod: 25 * 3_600_000,
      maxAttempts: 3,
      queueName: "reports",
      priority: -5,
      jobKey: "key",
      jobKeyMode: "preserve_run_at",
      timeZone: "Europe/Berlin",
      dst: { skipped: "skip" },
      missed: "last",
      overlap: "skip",
      flags: ["mail", "slow"],
      seconds: [0, 30],
    },
  });
});

test("an entry is never changed by what is made from it", () => {
  const plain = cron.everyMinute("a");
  const other = plain.priority(3).payload({ x: 1 });
  expect(plain.build()).toEqual({ task: "a", match: "* * * * *", options: {} });
  expect(other.build()).toMatchObject({ options: { priority: 3 }, payload: { x: 1 } });
});

test("a job key replaces unless a mode was said before or after", () => {
  expect(cron.everyMinute("a").jobKey("k").build().options).toEqual({ jobKey: "k", jobKeyMode: "replace" });
  expect(cron.everyMinute("a").jobKeyMode("preserve_run_at").jobKey("k").build().options?.jobKeyMode).toBe(
    "preserve_run_at",
  );
});

test("entries and plain items mix", () => {
  const items = parseCronItems([cron.hourlyAt("a", 5), { task: "b", match: "* * * * *" }]);
  expect(items.map((item) => item.task)).toEqual(["a", "b"]);
});

describe("a value out of range throws where it is written", () => {
  test.each<[string, () => unknown, string]>([
    ["n", () => cron.everyMinutes("a", 0), "'n' of a cron entry must be a whole number from 1 to 59, got '0'."],
    ["n", () => cron.everyMinutes("a", 60), "'n'"],
    ["minute", () => cron.hourlyAt("a", 60), "'minute'"],
    ["minute", () => cron.hourlyAt("a", 1.5), "'minute'"],
    ["hour", () => cron.dailyAt("a", 24, 0), "'hour'"],
    ["weekday", () => cron.weeklyOn("a", 8, 0, 0), "'day'"],
    ["weekday name", () => cron.weeklyOn("a", "mittwoch" as never, 0, 0), "one of sunday, monday"],
    ["day", () => cron.monthlyOn("a", 0, 0, 0), "'day'"],
    ["month", () => cron.yearlyOn("a", 13, 1, 0, 0), "'month'"],
    [
      "day of month",
      () => cron.yearlyOn("a", 2, 30, 0, 0),
      "'day' of a cron entry must be a whole number from 1 to 29, got '30'.",
    ],
    ["pattern", () => cron.matching("a", "61 * * * *"), "Too large value '61'"],
    ["task", () => cron.everyMinute(""), "'task'"],
    ["id", () => cron.everyMinute("a").id("1 2"), "'id'"],
    ["fill", () => cron.everyMinute("a").fill({ hours: -1 }), "'hours'"],
    ["fill unit", () => cron.everyMinute("a").fill({ fortnights: 1 } as never), "'fortnights' is no unit of time"],
    ["maxAttempts", () => cron.everyMinute("a").maxAttempts(0), "'maxAttempts'"],
    ["queue", () => cron.everyMinute("a").queue(""), "'queue'"],
    ["priority", () => cron.everyMinute("a").priority(40_000), "'priority'"],
    ["jobKey", () => cron.everyMinute("a").jobKey(""), "'jobKey'"],
    ["jobKeyMode", () => cron.everyMinute("a").jobKeyMode("unsafe_dedupe" as never), "'jobKeyMode'"],
    ["payload", () => cron.everyMinute("a").payload([] as never), "'payload'"],
    ["timeZone", () => cron.everyMinute("a").timeZone("Mars"), "'timeZone'"],
    ["dst", () => cron.everyMinute("a").dst({ repeated: "none" as never }), "'dst.repeated'"],
    ["missed", () => cron.everyMinute("a").missed("some" as never), "'missed'"],
    ["overlap", () => cron.everyMinute("a").overlap("no" as never), "'overlap'"],
    ["seconds", () => cron.everyMinute("a").seconds("60"), "'seconds'"],
  ])("%s", (_, write, message) => {
    expect(write).toThrow(message);
  });
});

test("the task's name stays in the type of the entry", () => {
  const entry = cron.everyMinute("send_report");
  expectTypeOf(entry).toEqualTypeOf<CronEntry<"send_report">>();
  expectTypeOf<CronPayloadOf<"send_report">>().toEqualTypeOf<{ [key: string]: unknown }>();
});

test("a definition stands for its task, and its payload is checked by the compiler", () => {
  const report = defineTask({ identifier: "report", run: (_payload: { to: string; copies?: number }) => undefined });
  const entry = cron.dailyAt(report, 8, 30).payload({ to: "all" });
  expect(entry.build()).toMatchObject({ task: "report", match: "30 8 * * *", payload: { to: "all" } });
  expect(cron.matching(report, "@weekly").build()).toMatchObject({ task: "report", match: "@weekly" });
  // @ts-expect-error: 'to' is missing
  cron.dailyAt(report, 8, 30).payload({ copies: 2 });
  // @ts-expect-error: 'copies' is a number
  cron.everyMinute(report).payload({ to: "all", copies: "two" });
});
