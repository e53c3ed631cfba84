import { expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

test.each([{}, { key: "k" }])(
  "jobs that are paused or have forbidden flags take no place and no token (%j)",
  async (keyed) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    await utils.pause({ task: "paused" });
    await utils.pause({ queue: "paused" });
    // All of them come before those that may run.
    await db.query(`
      select graphile_worker.add_job('paused', '{"k":"x"}'),
        graphile_worker.add_job('call', '{"k":"x"}', flags => array['elsewhere']),
        graphile_worker.add_job('call', '{"k":"x"}', queue_name => 'paused'),
        graphile_worker.add_job('call', '{"k":"x"}', queue_name => 'q' || n, flags => array['elsewhere'])
      from generate_series(1, 10) as n`);
    await db.query(`select graphile_worker.add_job('call', '{"k":"x"}', priority => 1) from generate_series(1, 5)`);
    const ran: string[] = [];
    let running = 0;
    const task = async (_payload: unknown, { job }: { job: { id: string } }): Promise<void> => {
      ran.push(job.id);
      running++;
      await new Promise((resolve) => setTimeout(resolve, 2));
      expect(running--).toBe(1);
    };
    const shared = { concurrency: { limit: 1, ...keyed }, rateLimit: { limit: 1, period: "1h", burst: 3, ...keyed } };
    const worker = await startWorker(
      db,
      { paused: task, call: task },
      {
        concurrency: 6,
        forbiddenFlags: ["elsewhere"],
        limits: { shared },
        taskOptions: { paused: { limits: ["shared"] }, call: { limits: ["shared"] } },
      },
    );
    // There are four tokens, and all of them go to jobs that may run.
    await worker.completed(4);
    await until(async () => (await utils.listLimits()).every((limit) => limit.running === 0));
    const left = await db.jobs();
    expect(left).toHaveLength(41);
    expect(left.filter(({ attempts, locked_at }) => attempts > 0 || locked_at !== null)).toEqual([]);
    expect(left.filter(({ priority }) => priority === 1)).toHaveLength(1);
    expect(ran).toHaveLength(4);
    expect(worker.of("job:failed").concat(worker.of("job:error") as never)).toEqual([]);
  },
);
