import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HoldWatch } from "../../../src/worker/claim/hold-watch.ts";

// The library takes the process's timers at import; here it gets those that the test moves.
vi.mock("../../../src/util/timers.ts", () => ({
  setTimeout: (task: () => void, ms: number) => globalThis.setTimeout(task, ms),
  clearTimeout: (timer: NodeJS.Timeout) => globalThis.clearTimeout(timer),
  monotonicMs: () => globalThis.performance.now(),
}));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Scene {
  readonly held: { readySince: number; waitingSince: number };
  hasFreeSlot: boolean;
  readonly said: string[];
  readonly watch: HoldWatch;
}

function makeScene(ttlMs?: number): Scene {
  const scene: Scene = {
    held: { readySince: Infinity, waitingSince: Infinity },
    hasFreeSlot: false,
    said: [],
    watch: new HoldWatch({
      held: () => scene.held,
      hasFreeSlot: () => scene.hasFreeSlot,
      ttlMs,
      onStall: () => say("stall"),
      onOverdue: () => say("overdue"),
    }),
  };
  /** What is returned is held no longer. */
  const say = (what: string): void => {
    scene.said.push(what);
    Object.assign(scene.held, { readySince: Infinity, waitingSince: Infinity });
  };
  return scene;
}

test("without anything held there is nothing to watch", () => {
  const { watch } = makeScene();
  watch.watch();
  expect(vi.getTimerCount()).toBe(0);
});

test("with every slot busy and nothing started for 40 ms, it is a stall, and checked a second time", () => {
  const scene = makeScene();
  scene.held.readySince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(39);
  expect(scene.said).toEqual([]);
  vi.advanceTimersByTime(25);
  expect(scene.said).toEqual(["stall"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("as long as jobs start it is no stall, but none is held for much more than 200 ms", () => {
  const scene = makeScene();
  scene.held.readySince = performance.now();
  scene.watch.watch();
  for (let ms = 0; ms < 190; ms += 10) {
    vi.advanceTimersByTime(10);
    scene.watch.started(performance.now());
  }
  expect(scene.said).toEqual([]);
  for (let ms = 0; ms < 80; ms += 10) {
    vi.advanceTimersByTime(10);
    scene.watch.started(performance.now());
  }
  expect(scene.said).toEqual(["overdue"]);
});

test("a suspicion that does not last is dropped", () => {
  const scene = makeScene();
  scene.held.readySince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(40);
  scene.hasFreeSlot = true;
  vi.advanceTimersByTime(100);
  expect(scene.said).toEqual([]);
});

test("a job behind another of its queue goes back after 200 ms, even where a slot is free", () => {
  const scene = makeScene();
  scene.hasFreeSlot = true;
  scene.held.waitingSince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(199);
  expect(scene.said).toEqual([]);
  vi.advanceTimersByTime(60);
  expect(scene.said).toEqual(["overdue"]);
});

test("with a time of the user's own a stall does not count", () => {
  const scene = makeScene(5_000);
  scene.held.readySince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(4_900);
  expect(scene.said).toEqual([]);
  vi.advanceTimersByTime(200);
  expect(scene.said).toEqual(["overdue"]);
});

test("a closed watch is silent", () => {
  const scene = makeScene();
  scene.held.readySince = performance.now();
  scene.watch.watch();
  scene.watch.close();
  scene.watch.watch();
  vi.advanceTimersByTime(1_000);
  expect(scene.said).toEqual([]);
});

test("what comes to wait for its queue is returned in time, although all else may be held for minutes", () => {
  const scene = makeScene(300_000);
  scene.held.readySince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(1);
  scene.held.waitingSince = performance.now();
  scene.watch.watch();
  vi.advanceTimersByTime(300);
  expect(scene.said).toEqual(["overdue"]);
});
