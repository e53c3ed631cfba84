import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 90_000 });

test.each(["repeatable read", "serializable"])(
  "three pools stay within limits where transactions are %s by default, and complain of nothing",
  async (level) => {
    const db = await freshDatabase();
    await db.query(`alter database ${db.name} set default_transaction_isolation = '${level}'`);
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    const ran = new Set<string>();
    const begin = (name: string, by: 1 | -1): void => {
      running.set(name, (running.get(name) ?? 0) + by);
      most.set(name, Math.max(most.get(name) ?? 0, running.get(name)!));
    };
    const sync = async ({ k }: { k: string }, { job }: { job: { id: string } }): Promise<void> => {
      for (const name of ["all", k]) begin(name, 1);
      await new Promise((resolve) => setTimeout(resolve, 3));
      for (const name of ["all", k]) begin(name, -1);
      ran.add(job.id);
    };
    const taskOptions = { sync: { concurrency: [{ limit: 4 }, { limit: 2, key: "k" }] } };
    const workers = await Promise.all(
      [1, 2, 3].map(() => startWorker(db, { sync }, { concurrency: 4, pollInterval: 200, taskOptions })),
    );
    await db.query(
      "select graphile_worker.add_job('sync', json_build_object('k', 'k' || n % 3)) from generate_series(1, 150) as n",
    );
    await until(async () => (await db.jobs()).length === 0, { withinMs: 60_000, what: "every job is done" });
    for (const { runner } of workers) await runner.stop();
    expect(ran.size).toBe(150);
    expect(most.get("all")).toBeLessThanOrEqual(4);
    for (const k of ["k0", "k1", "k2"]) expect(most.get(k), k).toBeLessThanOrEqual(2);
    const complaints = workers.flatMap(({ lines }) =>
      lines.filter(({ level: of, message }) => /error|warning/.test(of) && !message.startsWith("default_transaction_")),
    );
    expect(complaints).toEqual([]);
  },
);
