import { expect, test, vi } from "vitest";
import { RateLimitError } from "../../src/job-errors.ts";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

/** The most starts in any window that begins with one. */
function most(starts: readonly number[], periodMs: number): number {
  const sorted = [...starts].sort((one, other) => one - other);
  return Math.max(
    0,
    ...sorted
      .map((at, n) => sorted.findIndex((o, m) => m > n && o >= at + periodMs) - n)
      .map((count, n) => (count < 0 ? sorted.length - n : count)),
  );
}

test("in every window of the period no more jobs start than limit plus burst, in two pools together", async () => {
  const db = await freshDatabase();
  const starts: number[] = [];
  const tasks = { call: () => void starts.push(performance.now()) };
  const options = { concurrency: 5, taskOptions: { call: { rateLimit: { limit: 20, period: "1s", burst: 3 } } } };
  const one = await startWorker(db, tasks, options);
  await startWorker(db, tasks, options);
  await one.runner.addJobs(Array.from({ length: 70 }, () => ({ identifier: "call", payload: {} })));
  await until(() => starts.length === 70, { withinMs: 40_000 });
  expect(most(starts, 1_000)).toBeLessThanOrEqual(23);
  expect(await db.jobs()).toEqual([]);
});

test("a job that met a 429 holds back its key and uses no attempt; other keys go on", async () => {
  const db = await freshDatabase();
  const ran: string[] = [];
  let attempts: number | undefined;
  const worker = await startWorker(
    db,
    {
      call: (payload: { key: string; nth: number }, { job }: { job: { attempts: number } }) => {
        ran.push(`${payload.key}${payload.nth}`);
        if (payload.key === "a" && payload.nth === 1 && ran.filter((name) => name === "a1").length === 1) {
          throw new RateLimitError({ retryAfter: 1_500 });
        }
        if (payload.key === "a" && payload.nth === 1) attempts = job.attempts;
      },
    },
    { concurrency: 1, taskOptions: { call: { rateLimit: { limit: 1_000, period: "1s", burst: 1_000, key: "key" } } } },
  );
  const utils = await utilsOf(db);
  await worker.runner.addJob("call", { key: "a", nth: 1 });
  await until(() => ran.length === 1);
  await until(async () => (await utils.listLimits())[0]?.holds.length === 1);
  await worker.runner.addJob("call", { key: "a", nth: 2 });
  await worker.runner.addJob("call", { key: "b", nth: 1 });
  await until(() => ran.includes("b1"));
  expect(ran).toEqual(["a1", "b1"]);
  const waiting = (await db.jobs()).find(({ payload }) => (payload as { nth: number }).nth === 2)!;
  const { reasons } = await utils.explainJob(waiting.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", by: "hold", key: "a", reason: "Held back for 2 seconds" });
  await until(() => ran.length === 4);
  expect(attempts).toBe(1);
});
