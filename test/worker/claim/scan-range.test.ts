import fc from "fast-check";
import { expect, test } from "vitest";
import { type Claimed, ScanRanges } from "../../../src/worker/claim/scan-range.ts";

const mark = [0, "2026-01-01T00:00:00Z", "5"] as const;
const cheap = { marks: JSON.stringify([mark]), tasks_ms: 1, queues_ms: 1, left_queues: null, due_in_ms: null };
const everywhere = { marks: [], withQueues: true, ownQueues: [] };
const nothing = claimed([]);

/** A claim of one job from each of these queues. */
function claimed(queueIds: readonly (number | null)[], isFull = false): Claimed {
  return { jobs: queueIds.map((job_queue_id) => ({ job_queue_id })), isFull };
}

/** Searches of queues cost too much, so the next claim makes none. */
function afterCostlySearches(): ScanRanges {
  const ranges = new ScanRanges();
  for (const now of [1_000, 1_100]) ranges.learn(now, everywhere, { ...cheap, queues_ms: 20 }, nothing);
  return ranges;
}

test("as long as that is cheap, each claim scans everywhere", () => {
  const ranges = new ScanRanges();
  for (let now = 0; now < 5; now++) {
    expect(ranges.next(now)).toEqual(everywhere);
    expect(ranges.learn(now, everywhere, cheap, claimed([null]))).toBe(Infinity);
    expect(ranges.hasLeftOut).toBe(false);
  }
});

test("after two expensive full scans a claim starts at the marks, and a full scan follows when its budget allows", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, tasks_ms: 50 };
  ranges.learn(1_000, everywhere, costly, nothing);
  expect(ranges.next(1_000)).toEqual(everywhere);
  ranges.learn(1_100, everywhere, costly, nothing);
  const range = ranges.next(1_100);
  expect(range).toEqual({ ...everywhere, marks: [mark] });
  expect(ranges.learn(1_110, range, cheap, nothing)).toBe(1_600);
  expect(ranges.hasLeftOut).toBe(true);
  expect(ranges.next(1_599)).toEqual(range);
  expect(ranges.next(1_600)).toEqual(everywhere);
  expect(ranges.learn(1_600, everywhere, cheap, nothing)).toBe(Infinity);
  expect(ranges.hasLeftOut).toBe(false);
});

test("queues that are expensive to scan are left out until their budget allows", () => {
  const ranges = afterCostlySearches();
  const range = ranges.next(1_100);
  expect(range).toEqual({ ...everywhere, withQueues: false });
  expect(ranges.learn(1_110, range, cheap, nothing)).toBe(1_300);
  expect(ranges.hasLeftOut).toBe(true);
  expect(ranges.next(1_300)).toEqual(everywhere);
});

test("returned jobs may lie behind the marks, so the next scan is from the start", () => {
  const ranges = new ScanRanges();
  const costly = { ...cheap, tasks_ms: 50 };
  ranges.learn(1_000, everywhere, costly, nothing);
  ranges.learn(1_100, everywhere, costly, nothing);
  ranges.startOver();
  expect(ranges.next(1_100)).toEqual(everywhere);
});

test("queues that we released are claimed from without a search, once", () => {
  const ranges = afterCostlySearches();
  ranges.released(7);
  const range = ranges.next(1_110);
  expect(range).toEqual({ marks: [], withQueues: false, ownQueues: [7] });
  // A claim that failed has not been there.
  expect(ranges.next(1_110)).toEqual(range);
  ranges.released(8);
  ranges.learn(1_120, range, cheap, claimed([7]));
  expect(ranges.next(1_130).ownQueues).toEqual([8]);
});

test("a queue that we release while a claim is under way is visited by the next one, even if this one was to visit it", () => {
  const ranges = afterCostlySearches();
  ranges.released(7);
  const range = ranges.next(1_110);
  // A job of it was claimed apart (its task is limited) and has ended before the claim got there.
  ranges.released(7);
  ranges.learn(1_120, range, cheap, nothing);
  expect(ranges.next(1_130).ownQueues).toEqual([7]);
});

test("a queue that we released is visited again if there was no room for its jobs, or another transaction held them", () => {
  const ranges = afterCostlySearches();
  for (const queueId of [7, 8, 9]) ranges.released(queueId);
  ranges.learn(1_120, ranges.next(1_110), { ...cheap, left_queues: [8] }, claimed([7], true));
  expect(ranges.next(1_130).ownQueues).toEqual([8]);
});

test.each([
  { why: "there was room for no more", isFull: true, due_in_ms: null, ownQueues: [8] },
  { why: "another transaction held one", isFull: false, due_in_ms: 0, ownQueues: [8] },
  { why: "it left nothing", isFull: false, due_in_ms: 500, ownQueues: [] },
])("after a search that took from one of our queues, where $why, those to visit are $ownQueues", (given) => {
  const ranges = afterCostlySearches();
  for (const queueId of [7, 8]) ranges.released(queueId);
  const range = ranges.next(1_300);
  expect(range.withQueues).toBe(true);
  ranges.learn(1_310, range, { ...cheap, queues_ms: 20, due_in_ms: given.due_in_ms }, claimed([7], given.isFull));
  expect(ranges.next(1_320)).toEqual({ marks: [], withQueues: false, ownQueues: given.ownQueues });
});

test("of more queues than are worth visiting one by one, the search finds the rest", () => {
  const ranges = afterCostlySearches();
  for (let queueId = 0; queueId < 3_000; queueId++) {
    ranges.released(queueId);
    if (queueId === 700) ranges.next(1_110);
  }
  expect(ranges.next(1_110).ownQueues).toHaveLength(1_000);
});

test("a search for queues that finds many jobs is not costly, however slow the machine is", () => {
  const ranges = new ScanRanges();
  const many = claimed(Array.from({ length: 2_000 }, () => 1));
  for (let now = 0; now < 5; now++) ranges.learn(now, everywhere, { ...cheap, queues_ms: 100 }, many);
  expect(ranges.next(5)).toEqual(everywhere);
});

test("a search for queues that finds none is costly, however many jobs were found outside of them", () => {
  const ranges = new ScanRanges();
  const many = claimed(Array.from({ length: 2_000 }, () => null));
  for (const now of [1_000, 1_100]) ranges.learn(now, everywhere, { ...cheap, queues_ms: 100 }, many);
  expect(ranges.next(1_101)).toEqual({ ...everywhere, withQueues: false });
});

/** A queue of a made-up database. */
interface Queue {
  jobs: number;
  holder: "us" | "another pool" | null;
  /** An application has locked its row. */
  isLocked: boolean;
}

type Deed = "take" | "lock" | "release" | "add";

test("no queue that we released and that is free for its next job is left to a search", () => {
  const act = fc.record({
    queue: fc.integer({ min: 0, max: 4 }),
    deed: fc.constantFrom<Deed>("take", "lock", "release", "release", "add"),
  });
  const round = fc.record({
    before: fc.array(act, { maxLength: 4 }),
    during: fc.array(act, { maxLength: 2 }),
    room: fc.integer({ min: 1, max: 4 }),
    hasFailed: fc.boolean(),
    restMs: fc.constantFrom(1, 1, 1, 300),
  });
  fc.assert(
    fc.property(fc.array(round, { maxLength: 30 }), (rounds) => {
      const ranges = afterCostlySearches();
      const queues = Array.from({ length: 5 }, (): Queue => ({ jobs: 1, holder: "us", isLocked: false }));
      /** Those that a claim has to find without a search. */
      const ours = new Set<number>();
      const deeds: Record<Deed, (queue: Queue, id: number) => void> = {
        add: (queue) => queue.jobs++,
        lock: (queue) => (queue.isLocked = !queue.isLocked),
        take: (queue, id) => {
          if (queue.holder !== null && queue.holder !== "another pool") return;
          queue.holder = queue.holder ? null : "another pool";
          ours.delete(id);
        },
        release: (queue, id) => {
          if (queue.holder !== "us") return;
          queue.holder = null;
          ranges.released(id);
          ours.add(id);
        },
      };
      let now = 1_100;
      for (const { before, during, room, hasFailed, restMs } of rounds) {
        now += restMs;
        for (const { queue, deed } of before) deeds[deed](queues[queue]!, queue);
        const range = ranges.next(now);
        if (!range.withQueues) expect(range.ownQueues).toEqual(expect.arrayContaining([...ours]));
        const visited = (range.withQueues ? [...queues.keys()] : range.ownQueues).filter(
          (id) => queues[id]!.holder === null && queues[id]!.jobs > 0,
        );
        const free = visited.filter((id) => !queues[id]!.isLocked);
        const taken = hasFailed ? [] : free.slice(0, room);
        for (const id of taken) Object.assign(queues[id]!, { holder: "us", jobs: queues[id]!.jobs - 1 });
        // What is empty has been seen to be.
        for (const id of [...ours]) if (!hasFailed && (taken.includes(id) || queues[id]!.jobs === 0)) ours.delete(id);
        // The claim has read what it reads, and its answer is on the way.
        const others = during.filter(({ queue }) => !taken.includes(queue));
        for (const { queue, deed } of others) deeds[deed](queues[queue]!, queue);
        if (hasFailed) continue;
        const left = visited.filter((id) => !taken.includes(id));
        const isFull = taken.length === room;
        const answer = {
          ...cheap,
          queues_ms: 20,
          left_queues: range.withQueues ? null : left,
          due_in_ms: !isFull && left.length > 0 ? 0 : null,
        };
        ranges.learn(now, range, answer, claimed(taken, isFull));
      }
    }),
  );
});
