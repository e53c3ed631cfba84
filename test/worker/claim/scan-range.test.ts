import { expect, test } from "vitest";
import { ScanRanges } from "../../../src/worker/claim/scan-range.ts";

const mark = [0, "2026-01-01T00:00:00Z", "5"] as const;
const cheap = { marks: JSON.stringify([mark]), tasks_ms: 1, queues_ms: 1 };
const everywhere = { marks: [], withQueues: true, ownQueues: [] };

test("as long as that is cheap, each claim scans everywhere", () => {
  const ranges = new ScanRanges();
  for (let now = 0; now < 5; now++) {
    expect(ranges.next(now)).toEqual(everywhere);
    expect(ranges.learn(now, everywhere, cheap, 1)).toBe(Infinity);
    expect(ranges.hasLeftOut).toBe(false);
  }
});

test("after two expensive full scans a claim starts at the marks, and a full scan follows when its budget allows", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, tasks_ms: 50 };
  ranges.learn(1_000, everywhere, costly, 0);
  expect(ranges.next(1_000)).toEqual(everywhere);
  ranges.learn(1_100, everywhere, costly, 0);
  const range = ranges.next(1_100);
  expect(range).toEqual({ ...everywhere, marks: [mark] });
  expect(ranges.learn(1_110, range, cheap, 0)).toBe(1_600);
  expect(ranges.hasLeftOut).toBe(true);
  expect(ranges.next(1_599)).toEqual(range);
  expect(ranges.next(1_600)).toEqual(everywhere);
  expect(ranges.learn(1_600, everywhere, cheap, 0)).toBe(Infinity);
  expect(ranges.hasLeftOut).toBe(false);
});

test("queues that are expensive to scan are left out until their budget allows", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, queues_ms: 20 };
  ranges.learn(1_000, everywhere, costly, 0);
  ranges.learn(1_100, everywhere, costly, 0);
  const range = ranges.next(1_100);
  expect(range).toEqual({ ...everywhere, withQueues: false });
  expect(ranges.learn(1_110, range, cheap, 0)).toBe(1_300);
  expect(ranges.hasLeftOut).toBe(true);
  expect(ranges.next(1_300)).toEqual(everywhere);
});

test("returned jobs may lie behind the marks, so the next scan is from the start", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, tasks_ms: 50 };
  ranges.learn(1_000, everywhere, costly, 0);
  ranges.learn(1_100, everywhere, costly, 0);
  ranges.startOver();
  expect(ranges.next(1_100)).toEqual(everywhere);
});

test("queues that we released are claimed from without a search, once", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, queues_ms: 20 };
  ranges.learn(1_000, everywhere, costly, 0);
  ranges.learn(1_100, everywhere, costly, 0);
  ranges.released(7);
  const range = ranges.next(1_110);
  expect(range).toEqual({ marks: [], withQueues: false, ownQueues: [7] });
  // A claim that failed has not been there.
  expect(ranges.next(1_110)).toEqual(range);
  ranges.released(8);
  ranges.learn(1_120, range, cheap, 1);
  expect(ranges.next(1_130).ownQueues).toEqual([8]);
});

test("a search for queues that finds many jobs is not costly, however slow the machine is", () => {
  const ranges = new ScanRanges();
  for (let now = 0; now < 5; now++) ranges.learn(now, everywhere, { ...cheap, queues_ms: 100 }, 2_000);
  expect(ranges.next(5)).toEqual(everywhere);
});
