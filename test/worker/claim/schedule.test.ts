import fc from "fast-check";
import { expect, test } from "vitest";
import { Schedule } from "../../../src/worker/claim/schedule.ts";
import { times } from "../../support/times.ts";

const pollMs = 2_000;
/** `backoffMs` spreads by half around its figure: 0.5 leaves it as it is. */
const middle = (): number => 0.5;

/** A schedule whose first scan found nothing at 1000. */
function idle(random: () => number = middle): Schedule {
  const schedule = new Schedule({ pollInterval: () => pollMs, random });
  schedule.turn(1_000);
  schedule.begin();
  schedule.answered();
  schedule.scanned(1_000, nothing);
  return schedule;
}

const nothing = { dueInMs: null, isFull: false, leftOutAt: Infinity };

test("the first scan is due at once, and the next one a poll interval after a scan that found nothing", () => {
  const schedule = new Schedule({ pollInterval: () => pollMs });
  expect([schedule.isHungry, schedule.nextScanAt]).toEqual([true, 0]);
  const rested = idle();
  expect([rested.isHungry, rested.nextScanAt]).toEqual([false, 1_000 + pollMs]);
  rested.turn(2_999);
  expect(rested.isHungry).toBe(false);
  rested.turn(3_000);
  expect(rested.begin()).toEqual({ isHungry: true, isTimed: true });
});

test("a scan that found all it was asked for is followed by another at once", () => {
  const schedule = idle();
  schedule.scanned(1_000, { ...nothing, isFull: true });
  expect(schedule.isHungry).toBe(true);
});

test("a scan follows when the next job falls due, and when there is something that was left out", () => {
  const schedule = idle();
  schedule.scanned(1_000, { ...nothing, dueInMs: 300 });
  expect(schedule.nextScanAt).toBe(1_300);
  schedule.scanned(1_000, { ...nothing, dueInMs: 300, leftOutAt: 1_100 });
  expect(schedule.nextScanAt).toBe(1_100);
});

test("a nudge during a scan leads to one more", () => {
  const schedule = idle();
  schedule.nudge();
  expect(schedule.begin()).toEqual({ isHungry: true, isTimed: false });
  schedule.nudge();
  schedule.scanned(1_000, nothing);
  expect(schedule.isHungry).toBe(true);
});

test("a job that is expected during a scan is not forgotten by its answer, one from before is", () => {
  const schedule = idle();
  expect(schedule.expect(1_500)).toBe(true);
  expect(schedule.expect(1_600)).toBe(false);
  expect(schedule.nextScanAt).toBe(1_500);
  schedule.begin();
  expect(schedule.expect(1_700)).toBe(false);
  schedule.scanned(1_400, nothing);
  expect(schedule.nextScanAt).toBe(1_700);
});

test("due jobs that others hold are scanned for soon, and less often if they do not let go", () => {
  const schedule = idle();
  const rests: number[] = [];
  for (let count = 1; count <= 12; count++) {
    schedule.scanned(1_000, { ...nothing, dueInMs: 0 });
    rests.push(schedule.nextScanAt - 1_000);
    expect(schedule.contentions).toBe(count);
  }
  expect(rests.slice(0, 3)).toEqual([10, 15, 22.5]);
  expect(rests.at(-1)).toBe(500);
  schedule.turn(2_000);
  // Time has come, but another scan's view of the table would not be ours.
  expect(schedule.begin()).toEqual({ isHungry: true, isTimed: false });
  schedule.scanned(2_000, nothing);
  expect([schedule.contentions, schedule.nextScanAt]).toEqual([0, 2_000 + pollMs]);
});

test("errors rest longer each time, at most a poll interval, and an answer ends that", () => {
  const schedule = idle();
  schedule.nudge();
  const rests = Array.from({ length: 8 }, () => schedule.failed(1_000, false) - 1_000);
  expect(rests.slice(0, 3)).toEqual([200, 300, 450]);
  expect(rests.at(-1)).toBe(pollMs);
  expect([schedule.isHungry, schedule.errors, schedule.nextScanAt]).toEqual([false, 8, 1_000 + pollMs]);
  schedule.answered();
  expect([schedule.errors, schedule.failed(1_000, false)]).toEqual([0, 1_200]);
});

test("a conflict between transactions is tried again sooner than an error", () => {
  expect(idle().failed(1_000, true)).toBe(1_010);
});

test("without a heartbeat the next scan waits for one, and counts as contended", () => {
  const schedule = idle();
  expect(schedule.doubted(1_000)).toBe(1_200);
  expect([schedule.nextScanAt, schedule.contentions]).toEqual([1_200, 1]);
});

test("another process's scan stands for our poll, and ours of its next job comes a little later", () => {
  const schedule = idle(() => 0);
  // Later than the poll that it stands for, and then earlier than the poll after that.
  expect(schedule.rely(2_900, 500, { presenceAt: Infinity, place: 0 })).toBe(false);
  expect(schedule.nextScanAt).toBe(2_900 + 500 + 50);
  expect(schedule.rely(2_900, null, { presenceAt: Infinity, place: 0 })).toBe(false);
  expect(schedule.nextScanAt).toBe(2_900 + 0.9 * pollMs);
  expect(schedule.rely(2_900, 500, { presenceAt: Infinity, place: 0 })).toBe(true);
  schedule.scanned(3_000, nothing);
  expect(schedule.nextScanAt).toBe(3_000 + pollMs);
});

test("after another process's scan those who poll next do so one after the other", () => {
  const nextScans = [0, 0.5, 1].map((place) => {
    const schedule = idle();
    schedule.rely(2_900, null, { presenceAt: Infinity, place });
    return schedule.nextScanAt;
  });
  expect(nextScans).toEqual([0.9, 0.95, 1].map((share) => 2_900 + share * pollMs));
});

test("others have to hear of us now and then, so their scans cannot put off our poll indefinitely", () => {
  const schedule = idle(() => 1);
  schedule.rely(2_900, null, { presenceAt: 3_500, place: 1 });
  expect(schedule.nextScanAt).toBe(3_500);
  schedule.rely(3_400, null, { presenceAt: 3_500, place: 1 });
  expect(schedule.nextScanAt).toBe(3_500);
});

test("where there was nothing to scan for, the next poll decides", () => {
  const schedule = idle();
  schedule.scanned(1_000, { ...nothing, dueInMs: 300 });
  schedule.begin();
  schedule.skipped(1_200);
  expect(schedule.nextScanAt).toBe(1_200 + pollMs);
});

test("whatever happens, the next scan is at most a poll interval away, and an expected job is not missed", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("expect" as const), ms: fc.nat(5_000) }),
    fc.record({ kind: fc.constant("rely" as const), ms: fc.option(fc.nat(5_000)) }),
    fc.record({ kind: fc.constant("scan" as const), ms: fc.option(fc.integer({ min: -10, max: 5_000 })) }),
    fc.record({ kind: fc.constant("fail" as const), ms: fc.nat(5_000) }),
    fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(1_000) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
      const schedule = idle();
      let now = 1_000;
      let expected = Infinity;
      for (const { kind, ms } of steps) {
        if (kind === "expect") {
          schedule.expect(now + ms);
          expected = Math.min(expected, now + ms);
        } else if (kind === "rely") {
          schedule.rely(now, ms, { presenceAt: Infinity, place: (now % 10) / 10 });
        } else if (kind === "pass") {
          now = Math.min(now + ms, Math.max(now, schedule.nextScanAt));
          schedule.turn(now);
        } else {
          schedule.begin();
          expected = Infinity;
          if (kind === "fail") schedule.failed(now, ms % 2 === 0);
          else schedule.scanned(now, { ...nothing, dueInMs: ms });
        }
        expect(schedule.nextScanAt).toBeLessThanOrEqual(now + pollMs);
        expect(schedule.isHungry || schedule.nextScanAt <= expected).toBe(true);
      }
    }),
    { numRuns: times(200) },
  );
});
