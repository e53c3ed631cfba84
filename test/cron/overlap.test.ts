import { expect, test } from "vitest";
import { cronBench } from "./scheduler-kit.ts";

const everyMinute = "* * * * * task ?overlap=skip";

test("no job is added while the previous one waits, and the run counts as done", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([everyMinute]);
  await bench.clock.advanceTo("2026-01-01T00:03:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00"]);
  expect(await bench.lastExecution("task")).toBe("2026-01-01T00:03:00.000Z");
});

test("no job is added while the previous one runs its last attempt", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([everyMinute]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  await bench.db.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, locked_at = now(), locked_by = 'x'",
  );
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  expect(await bench.runs()).toHaveLength(1);
});

test.each([
  ["done", "delete from graphile_worker._private_jobs"],
  ["dead", "update graphile_worker._private_jobs set attempts = max_attempts"],
])("a job is added once the previous one is %s", async (_, end) => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([everyMinute]);
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  await bench.db.query(end);
  await bench.clock.advanceTo("2026-01-01T00:03:30Z");
  expect((await bench.runs()).at(-1)).toBe("2026-01-01T00:03:00");
});

test("entries of one task do not stand in each other's way", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  bench.start([`${everyMinute}&id=a\n${everyMinute}&id=b`]);
  await bench.clock.advanceTo("2026-01-01T00:02:30Z");
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00", "2026-01-01T00:01:00"]);
});

test("back-filling adds one job at most", async () => {
  const bench = await cronBench("2026-01-01T06:30:00Z");
  await bench.know("task", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
  bench.start(["0 * * * * task ?fill=1d&overlap=skip"]);
  await bench.clock.asleep(1);
  expect(await bench.runs()).toEqual(["2026-01-01T01:00:00*"]);
  expect(await bench.lastExecution("task")).toBe("2026-01-01T06:00:00.000Z");
});
