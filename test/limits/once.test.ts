import { expect, test, vi } from "vitest";
import { runOnce, runTaskListOnce } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

vi.setConfig({ testTimeout: 60_000 });

test.each(["runOnce", "runTaskListOnce"])("%s respects limits, runs all that they admit, and ends", async (way) => {
  const db = await freshDatabase();
  const ran: Record<string, number> = {};
  const count = (name: string): void => {
    ran[name] = (ran[name] ?? 0) + 1;
  };
  let running = 0;
  let most = 0;
  const taskList = {
    sync: async ({ k }: { k: string }) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      count(k);
    },
    call: () => count("call"),
    free: () => count("free"),
  };
  // Another worker has the only place of one key.
  await db.query(`
    select graphile_worker.add_job('sync', '{"k":"busy"}');
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'another';
    select graphile_worker.add_job('sync', json_build_object('k', k)) from unnest(array['busy', 'a', 'b', 'c']) as k, generate_series(1, 8);
    select graphile_worker.add_job('call'), graphile_worker.add_job('free') from generate_series(1, 5)`);
  const options = {
    logger: rememberingLogger().logger,
    noHandleSignals: true,
    taskOptions: {
      sync: { concurrency: [{ limit: 3 }, { limit: 1, key: "k" }] },
      call: { rateLimit: { limit: 1, period: "1h", burst: 2 } },
    },
  };
  if (way === "runOnce") {
    await runOnce({ ...options, connectionString: db.url, concurrency: 6, taskList });
  } else {
    const client = await db.pool.connect();
    try {
      await runTaskListOnce(options, taskList, client);
    } finally {
      client.release();
    }
  }
  expect(ran).toEqual({ a: 8, b: 8, c: 8, call: 3, free: 5 });
  // One of the three places is taken by the other worker.
  expect(most).toBe(way === "runOnce" ? 2 : 1);
  const left = await db.jobs();
  expect(left).toHaveLength(9 + 2);
  expect(left.filter(({ locked_at }) => locked_at !== null).map(({ locked_by }) => locked_by)).toEqual(["another"]);
});
