import { expect, test } from "vitest";
import { monotonicMs } from "../../../src/util/timers.ts";
import { Claimer, type ClaimerOptions } from "../../../src/worker/claim/claimer.ts";
import { until } from "../../support/wait.ts";

/** A claimer whose tasks all have limits, as far as its loop needs one. */
function makeScene() {
  const scene = { scanAt: Infinity, looks: 0, hasRoom: true, onLook: () => {}, onSearch: () => {} };
  const limits = {
    get scanAt() {
      return scene.scanAt;
    },
    isUsed: true,
    hasAll: () => true,
    declare: async () => {},
  };
  const claimer = new Claimer({
    limits,
    strays: {
      get searchAt() {
        scene.onSearch();
        return Infinity;
      },
    },
    room: () => {
      scene.looks++;
      scene.onLook();
      return scene.hasRoom ? { jobs: 1, idle: 1, perQueue: 1 } : null;
    },
    tasks: async () => ({ ids: [1], nameById: new Map([[1, "task"]]) }),
    forbiddenFlags: async () => null,
    acceptedFlags: null,
    poolId: () => "pool",
    workerNames: () => [],
    pollInterval: () => 100_000,
    onClaiming: () => {},
    onError: (error: unknown) => {
      throw error;
    },
  } as unknown as ClaimerOptions);
  return { scene, claimer };
}

test("what falls due between a look at the clock and the rest is not slept through", async () => {
  const { scene, claimer } = makeScene();
  const stop = new AbortController();
  scene.hasRoom = false;
  scene.onLook = () => {
    if (scene.looks === 1) scene.scanAt = monotonicMs() + 1;
    else stop.abort();
  };
  scene.onSearch = () => {
    while (scene.looks === 1 && monotonicMs() <= scene.scanAt);
  };
  await claimer.run(stop.signal);
  expect(scene.looks).toBe(2);
});

test("what fell due while there was no room is looked for when there is", async () => {
  const { scene, claimer } = makeScene();
  const stop = new AbortController();
  const run = claimer.run(stop.signal);
  await until(() => scene.looks > 0 && claimer.turnedAt > 0);
  scene.hasRoom = false;
  await new Promise((resolve) => setImmediate(resolve));
  const before = scene.looks;
  claimer.wake();
  await new Promise((resolve) => setImmediate(resolve));
  expect(scene.looks).toBe(before);
  scene.scanAt = monotonicMs();
  claimer.wake();
  await until(() => scene.looks > before);
  stop.abort();
  await run;
});
