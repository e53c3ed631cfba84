import { expect, test } from "vitest";
import { type Blow, type Entry, judge } from "./ledger.ts";

/* The judge of all chaos runs is tried with ledgers whose faults are known. */

type Line = [at: number, event: Entry["event"], job: string, pid?: number, queue?: number | null];

function verdictOf(lines: readonly Line[], blows: readonly Blow[] = [], queue: string | null = null) {
  const entries = lines.map(
    ([at, event, job, pid = 1, queueId = queue === null ? null : 1]) =>
      ({ at, event, job, pid, queue: queueId, attempt: 1 }) as Entry,
  );
  return judge(entries, new Map(["a", "b"].map((job) => [job, queue])), blows);
}

const once: Line[] = [
  [0, "start", "a"],
  [10, "done", "a"],
  [20, "start", "b"],
  [30, "done", "b"],
];
const clean = { lost: [], doubled: [], overlapping: [], overtaking: [] };

test("jobs that ran once and in order are as they should be", () => {
  expect(verdictOf(once)).toEqual(clean);
  expect(verdictOf(once, [], "queue")).toEqual(clean);
});

test("a job that never ended, or ended badly, is lost", () => {
  expect(verdictOf(once.slice(0, 3)).lost).toEqual(["b"]);
  expect(verdictOf([...once.slice(0, 3), [30, "threw", "b"]]).lost).toEqual(["b"]);
});

test("a second run needs an excuse: a failure, or a blow to the process of the first", () => {
  const again: Line[] = [...once, [5_000, "start", "a", 2], [5_010, "done", "a", 2]];
  expect(verdictOf(again).doubled).toEqual(["job a ran in 2 again: it ended in 1 4990 ms before; hit were none"]);
  expect(verdictOf(again, [{ pid: 2, from: 5, to: 6_000 }]).doubled).toHaveLength(1);
  expect(verdictOf(again, [{ pid: 1, from: 5_005, to: 6_000 }]).doubled).toHaveLength(1);
  expect(verdictOf(again, [{ pid: 1, from: 5, to: Infinity }]).doubled).toEqual([]);
  expect(verdictOf(again, [{ pid: null, from: 5, to: 20 }]).doubled).toEqual([]);
  expect(verdictOf(again.with(1, [10, "threw", "a"])).doubled).toEqual([]);
});

test("a process that was stopped may only run again what it was about to start: the first line that it writes", () => {
  const again: Line[] = [...once, [5_000, "start", "a", 2], [5_010, "done", "a", 2]];
  const stopped = { pid: 2, from: 5, to: 4_000, backAt: 3_999 };
  expect(verdictOf(again, [stopped]).doubled).toEqual([]);
  expect(verdictOf(again, [{ ...stopped, backAt: 5_001 }]).doubled).toHaveLength(1);
  expect(verdictOf([...again, [4_999, "health", "", 2]], [stopped]).doubled).toHaveLength(1);
  expect(verdictOf([...again, [3_000, "health", "", 2]], [stopped]).doubled).toEqual([]);
});

test("runs of a queue at the same time are overlapping, unless the first process was hit", () => {
  const both: Line[] = [
    [0, "start", "a", 1],
    [5, "start", "b", 2],
    [10, "done", "a", 1],
    [15, "done", "b", 2],
  ];
  expect(verdictOf(both, [], "queue").overlapping).toHaveLength(1);
  expect(verdictOf(both).overlapping).toEqual([]);
  expect(verdictOf(both, [{ pid: 1, from: 3, to: 9 }], "queue").overlapping).toEqual([]);
});

test("a job of a queue that starts before the one in front of it was over is overtaking, whatever the excuse", () => {
  const swapped: Line[] = [
    [0, "start", "b"],
    [10, "done", "b"],
    [20, "start", "a"],
    [30, "done", "a"],
  ];
  expect(verdictOf(swapped, [{ pid: 1, from: 0, to: 40 }], "queue").overtaking).toEqual([
    "job b overtook job a in queue",
  ]);
  // The process of the one in front died, and it was not run again first.
  const skipped: Line[] = [
    [0, "start", "a"],
    [20, "start", "b", 2],
    [30, "done", "b", 2],
    [40, "start", "a", 2],
  ];
  expect(verdictOf(skipped, [{ pid: 1, from: 5, to: Infinity }], "queue").overtaking).toHaveLength(1);
  expect(verdictOf(swapped).overtaking).toEqual([]);
});
