import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { Arena, nothing } from "./kit.ts";

test("one of four workers is killed every two seconds: nothing is lost, doubled, overtaken or stuck", {
  timeout: 240_000,
}, async () => {
  const arena = new Arena((await freshDatabase()).url, 15);
  const workers = await Promise.all([1, 2, 3, 4].map(() => arena.start()));
  for (let death = 0; death < 6; death++) {
    await arena.addMixture(250);
    await arena.rest(1_500 + arena.any(1_000));
    const nth = arena.any(workers.length);
    await workers[nth]!.kill();
    workers[nth] = await arena.start();
  }
  expect(await arena.verdict()).toEqual(nothing);
  expect(arena.count("done")).toBeGreaterThanOrEqual(1_500);
});

test("workers are frozen past the threshold and wake up again: nothing is lost, doubled, overtaken or stuck", {
  timeout: 240_000,
}, async () => {
  const arena = new Arena((await freshDatabase()).url, 16);
  const workers = await Promise.all([1, 2, 3].map(() => arena.start()));
  for (let round = 0; round < 2; round++) {
    await arena.addMixture(400);
    await arena.rest(arena.any(500));
    const thaw = arena.pick(workers).freeze();
    // Its queues are free again when others have buried it.
    await arena.rest(5_000 + arena.any(1_500));
    thaw();
    await arena.addMixture(200);
    await arena.rest(500);
  }
  expect(await arena.verdict()).toEqual(nothing);
});
