import { expect, test } from "vitest";
import type { Job } from "../../../src/job.ts";
import { monotonicMs } from "../../../src/util/timers.ts";
import type { Room } from "../../../src/worker/claim/claim-request.ts";
import { Pace } from "../../../src/worker/claim/pace.ts";
import { HeldJobs } from "../../../src/worker/run/held-jobs.ts";
import { measureRoom } from "../../../src/worker/run/room.ts";

let nextId = 1;
const job = (queueId: number | null = null): Job => ({ id: String(nextId++), job_queue_id: queueId }) as Job;

interface Scene {
  readonly held: HeldJobs;
  readonly returned: string[][];
}

function makeScene(): Scene {
  const returned: string[][] = [];
  const held = new HeldJobs({
    pace: new Pace(),
    hasFreeSlot: () => false,
    ttlMs: undefined,
    onTime: () => undefined,
    onReturn: ({ jobs }) => returned.push(jobs.map(({ id }) => id)),
    onExpired: () => undefined,
  });
  return { held, returned };
}

function roomOf(held: HeldJobs, free: number, more: { localQueueSize?: number; pace?: Pace } = {}): Room | null {
  return measureRoom({
    slots: 4,
    free,
    held,
    pace: new Pace(),
    localQueueSize: undefined,
    mayHoldAhead: true,
    ...more,
  });
}

function seasoned(): Pace {
  const pace = new Pace();
  for (let n = 0; n < 1_000; n++) pace.observeJob(1);
  return pace;
}

test("a job with a moment of its own waits for that moment, the others only for a slot", () => {
  const { held, returned } = makeScene();
  const [now, later, missed, plain] = [job(), job(), job(), job()];
  const at = monotonicMs();
  const starts = new Map([
    [now.id, { at: at - 1, intendedUntil: at + 60_000, latestAt: at + 60_000 }],
    [later.id, { at: at + 60_000, intendedUntil: at + 60_000, latestAt: at + 60_000 }],
    [missed.id, { at: at - 2, intendedUntil: at - 1, latestAt: at - 1 }],
  ]);
  held.expect([now, later, missed], starts);
  held.add([now, later, missed, plain]);
  expect([held.size, held.timed, held.buffered, held.ready]).toEqual([4, 3, 1, 1]);
  expect(held.returnMissed()).toBe(true);
  expect(held.takeTimed()).toBe(now);
  expect(held.takeTimed()).toBeUndefined();
  expect(held.takeReady()).toBe(plain);
  expect(held.takeAll().jobs).toEqual([later]);
  expect(returned).toEqual([[missed.id]]);
});

test("a task that misses one start after the other is given more time, until it needs none", () => {
  const { held } = makeScene();
  const start = (fromMs: number, intendedMs: number, latestMs: number): void => {
    const one = job();
    const now = monotonicMs();
    held.expect(
      [one],
      new Map([[one.id, { at: now + fromMs, intendedUntil: now + intendedMs, latestAt: now + latestMs }]]),
    );
    held.add([one]);
    held.returnMissed();
    held.takeTimed();
  };
  const { task_id: taskId } = job();
  const miss = (): void => start(-2, -1, -1);
  expect(held.lateness.byTask).toEqual({});
  miss();
  expect(held.lateness.byTask).toEqual({});
  miss();
  expect(held.lateness.byTask).toEqual({ [taskId]: 100 });
  miss();
  expect(held.lateness.byTask).toEqual({ [taskId]: 200 });
  start(-2, -1, 60_000);
  expect(held.lateness.byTask).toEqual({ [taskId]: 200 });
  for (let n = 0; n < 2_000; n++) miss();
  expect(held.lateness.byTask).toEqual({ [taskId]: 5_000 });
  start(-2, 60_000, 120_000);
  expect(held.lateness.byTask).toEqual({});
});

test("a moment counts for one claim only", () => {
  const { held } = makeScene();
  const again = job();
  held.expect([again], new Map([[again.id, { at: Infinity, intendedUntil: Infinity, latestAt: Infinity }]]));
  held.add([again]);
  held.takeAll();
  held.add([again]);
  expect([held.timed, held.ready]).toEqual([0, 1]);
});

test("what is returned takes along what waits behind it in its queue", () => {
  const { held, returned } = makeScene();
  const [first, second, other] = [job(1), job(1), job()];
  held.add([first, second, other]);
  held.returnWhere(({ id }) => id === second.id);
  expect(returned).toEqual([[first.id, second.id]]);
  expect(held.jobs()).toEqual([other]);
});

test("there is room for the free slots, and for what will soon start", () => {
  const { held } = makeScene();
  expect(roomOf(held, 4)).toEqual({ jobs: 4, idle: 4, perQueue: 1 });
  expect(roomOf(held, 4, { pace: seasoned() })).toEqual({ jobs: 4 + 96, idle: 4, perQueue: 25 });
  held.add([job(), job(), job()]);
  expect(roomOf(held, 4)).toEqual({ jobs: 1, idle: 1, perQueue: 1 });
  expect(roomOf(held, 0)).toBeNull();
});

test("without a free slot a claim has to be worth a statement", () => {
  const { held } = makeScene();
  held.add(Array.from({ length: 49 }, () => job()));
  expect(roomOf(held, 0, { pace: seasoned() })).toBeNull();
  held.takeReady();
  expect(roomOf(held, 0, { pace: seasoned() })).toEqual({ jobs: 48, idle: 0, perQueue: 25 });
});

test("jobs that wait for their queue leave slots idle, and those that wait for their moment do not", () => {
  const { held } = makeScene();
  held.add([job(7), job(7), job(7)]);
  expect(roomOf(held, 4)).toEqual({ jobs: 3, idle: 3, perQueue: 1 });
  const timed = job();
  held.expect([timed], new Map([[timed.id, { at: Infinity, intendedUntil: Infinity, latestAt: Infinity }]]));
  held.add([timed]);
  expect(roomOf(held, 4)).toEqual({ jobs: 2, idle: 2, perQueue: 1 });
});

test("a local queue of a fixed size is filled when it is empty", () => {
  const { held } = makeScene();
  expect(roomOf(held, 2, { localQueueSize: 10 })).toEqual({ jobs: 10, idle: 2, perQueue: 10 });
  held.add([job()]);
  expect(roomOf(held, 2, { localQueueSize: 10 })).toBeNull();
});

test("the pace hears how many were started while there was one to start, and of those that went back", () => {
  const told: number[] = [];
  const pace = Object.assign(new Pace(), {
    observeStarts: (count: number, ms: number) => told.push(count, Math.round(ms)),
  });
  const nothing = (): void => undefined;
  const held = new HeldJobs({
    pace,
    hasFreeSlot: () => true,
    ttlMs: undefined,
    onTime: nothing,
    onReturn: nothing,
    onExpired: nothing,
  });
  const start = (at: number): void => {
    held.takeReady();
    held.started(at);
  };
  held.add([job(), job(), job()]);
  const now = monotonicMs();
  for (const ms of [10, 20, 70]) start(now + ms);
  expect(told).toEqual([3, 70]);
  held.add([job(), job(), job(), job()]);
  start(monotonicMs() + 50);
  // It hears of them at least this often.
  start(monotonicMs() + 150);
  expect(told.slice(2)).toEqual([2, 150]);
  held.takeAll();
  expect(told.at(-2)).toBe(0);
  // The time for which a job waited for another one of its queue does not count.
  const [first, second] = [job(7), job(7)];
  held.add([first, second]);
  start(monotonicMs());
  held.ended(first);
  start(monotonicMs() + 30);
  expect(told.slice(-4)).toEqual([1, 0, 1, 30]);
  held.close();
});
