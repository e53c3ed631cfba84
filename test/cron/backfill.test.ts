import { expect, test } from "vitest";
import { cronBench } from "./scheduler-kit.ts";

const now = "2026-01-01T12:30:30Z";

test.each([
  ["without 'fill', nothing", "", []],
  ["'fill' catches up on all runs within it", "?fill=2h", ["2026-01-01T11:00:00*", "2026-01-01T12:00:00*"]],
  ["'fill' reaches exactly as far as it says", "?fill=90m30s", ["2026-01-01T11:00:00*", "2026-01-01T12:00:00*"]],
  ["'fill' reaches no further than it says", "?fill=90m29s", ["2026-01-01T12:00:00*"]],
  ["'missed=last' catches up on the last one", "?missed=last", ["2026-01-01T12:00:00*"]],
  ["'missed=last' with 'fill' looks only that far back", "?missed=last&fill=10m", []],
  [
    "'missed=all' catches up on all since the last run",
    "?missed=all",
    ["2026-01-01T10:00:00*", "2026-01-01T11:00:00*", "2026-01-01T12:00:00*"],
  ],
  ["'missed=all' with 'fill' looks only that far back", "?missed=all&fill=1h", ["2026-01-01T12:00:00*"]],
  ["'missed=none' catches up on nothing", "?missed=none", []],
])("at start, %s", async (_, options, expected) => {
  const bench = await cronBench(now);
  await bench.know("task", "2025-01-01T00:00:00Z", "2026-01-01T09:00:00Z");
  bench.start([`0 * * * * task ${options}`.trim()]);
  await bench.clock.asleep(1);
  expect(await bench.runs()).toEqual(expected);
});

test("an entry that is new has missed nothing", async () => {
  const bench = await cronBench(now);
  bench.start(["0 * * * * task ?fill=1d\n0 * * * * other ?missed=all"]);
  await bench.clock.asleep(1);
  expect(await bench.db.jobs()).toEqual([]);
});

test("an entry that never ran is back-filled from the moment it became known, that moment included", async () => {
  const bench = await cronBench(now);
  await bench.know("task", "2026-01-01T11:00:00Z");
  bench.start(["0 * * * * task ?fill=1d"]);
  await bench.clock.asleep(1);
  expect(await bench.runs()).toEqual(["2026-01-01T11:00:00*", "2026-01-01T12:00:00*"]);
});

test("a run that is due at the very start is on time, not back-filled", async () => {
  const bench = await cronBench("2026-01-01T12:00:00Z");
  await bench.know("task", "2025-01-01T00:00:00Z", "2026-01-01T11:00:00Z");
  bench.start(["0 * * * * task ?fill=1d"]);
  await bench.clock.advanceTo("2026-01-01T12:00:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T12:00:00"]);
});

test("the event of each back-filled moment carries the items and their history", async () => {
  const bench = await cronBench(now);
  await bench.know("a", "2025-01-01T00:00:00Z", "2026-01-01T11:30:00Z");
  await bench.know("b", "2025-01-01T00:00:00Z");
  const { heard } = bench.start(["0 * * * * a ?fill=1h\n0,10 * * * * b ?fill=1h"]);
  await bench.clock.asleep(1);
  const events = heard.filter(([name]) => name === "cron:backfill").map(([, payload]) => payload);
  const since = { known_since: new Date("2025-01-01") };
  expect(events).toMatchObject([
    {
      timestamp: "2026-01-01T12:00:00.000Z",
      itemsToBackfill: [
        { identifier: "a", ...since, last_execution: new Date("2026-01-01T11:30:00Z"), job: { task: "a" } },
        { identifier: "b", ...since, last_execution: null, job: { payload: { _cron: { backfilled: true } } } },
      ],
    },
    { timestamp: "2026-01-01T12:10:00.000Z", itemsToBackfill: [{ identifier: "b" }] },
  ]);
  expect(heard.map(([name]) => name)).toEqual(["cron:starting", "cron:backfill", "cron:backfill", "cron:started"]);
});

test("a zone's missed runs are found by its own clock", async () => {
  const bench = await cronBench("2026-03-29T06:00:30Z");
  await bench.know("task", "2025-01-01T00:00:00Z", "2026-03-27T12:00:00Z");
  bench.start(["30 2 * * * task ?fill=2d&tz=Europe/Berlin"]);
  await bench.clock.asleep(1);
  expect(await bench.runs()).toEqual(["2026-03-28T01:30:00*", "2026-03-29T01:00:00*"]);
});
