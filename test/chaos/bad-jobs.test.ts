import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { Arena, nothing } from "./kit.ts";

test("a poison job is failed for good, and every innocent job around it and behind it in its queue ends well", {
  timeout: 240_000,
}, async () => {
  const db = await freshDatabase();
  const arena = new Arena(db.url, 1);
  await arena.addMixture(60);
  const [poison] = await arena.add([{ exit: true, queue: "queue 1" }]);
  await arena.addMixture(60);
  const deaths = await arena.keep(3);
  expect(await arena.verdict(120_000)).toEqual(nothing);
  expect(await db.job(poison!)).toMatchObject({ attempts: 25, last_error: expect.stringMatching(/^WorkerCrashed/) });
  // Nothing else ended a worker; and where others die as well, it takes up to three times `maxCrashes` to be sure.
  const starts = arena.entries().filter(({ event, job }) => event === "start" && job === poison);
  expect(deaths()).toBe(starts.length);
  expect(deaths()).toBeLessThanOrEqual(9);
});

test("whatever tasks throw fails their own job and nothing else", { timeout: 240_000 }, async () => {
  const arena = new Arena((await freshDatabase()).url, 2);
  // On a machine that is busy, heartbeats may take a while.
  const recovery = { heartbeatInterval: 5_000, sweepThreshold: 60_000, crashGrace: 30_000 };
  const [worker] = await Promise.all([1, 2].map(() => arena.start({ recovery })));
  await arena.addMixture(100);
  await arena.add(Array.from({ length: 42 }, (_, odd) => ({ odd, queue: odd % 3 ? null : `queue ${odd}` })));
  await arena.addMixture(100);
  expect(await arena.verdict()).toEqual(nothing);
  expect(arena.count("threw")).toBe(42);
  expect(worker!.output()).not.toMatch(/Lost the database|taken for dead/);
});
