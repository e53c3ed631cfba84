import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

interface Watched {
  readonly task: (payload: unknown) => Promise<void>;
  most(): number;
  done(): number;
}

/** A task that takes a moment and knows how many of it ran at once. */
function watched(ms = 5, keyOf: (payload: never) => string = () => ""): Watched {
  const running = new Map<string, number>();
  let most = 0;
  let done = 0;
  return {
    async task(payload) {
      const key = keyOf(payload as never);
      const now = (running.get(key) ?? 0) + 1;
      running.set(key, now);
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, ms));
      running.set(key, running.get(key)! - 1);
      done++;
    },
    most: () => most,
    done: () => done,
  };
}

test("two pools together never run more jobs of a task than its limit, and use it fully", async () => {
  const db = await freshDatabase();
  const sync = watched(5);
  const options = { concurrency: 5, taskOptions: { sync: { concurrency: 3 } } };
  const one = await startWorker(db, { sync: sync.task }, options);
  await startWorker(db, { sync: sync.task }, options);
  await one.runner.addJobs(Array.from({ length: 60 }, () => ({ identifier: "sync", payload: {} })));
  await until(() => sync.done() === 60);
  expect(sync.most()).toBe(3);
});

test("each key has its own limit", async () => {
  const db = await freshDatabase();
  const sync = watched(5, ({ tenantId }: { tenantId: string }) => tenantId);
  const all = watched(0);
  const options = {
    concurrency: 8,
    taskOptions: { sync: { concurrency: [{ limit: 5 }, { limit: 2, key: "tenantId" }] } },
  };
  const tasks = {
    sync: async (payload: unknown) => void (await Promise.all([sync.task(payload), all.task(payload)])),
  };
  const one = await startWorker(db, tasks, options);
  await startWorker(db, tasks, options);
  await one.runner.addJobs(
    Array.from({ length: 60 }, (_, n) => ({ identifier: "sync", payload: { tenantId: `t${n % 3}` } })),
  );
  await until(() => sync.done() === 60);
  expect(sync.most()).toBe(2);
  expect(all.most()).toBeLessThanOrEqual(5);
});
