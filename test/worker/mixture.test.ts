import { expect, test, vi } from "vitest";
import type { JobHelpers } from "../../src/task.ts";
import { freshDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { until } from "../support/wait.ts";
import { type StartedPool, startPool } from "./kit.ts";

// Much work for one test, and the machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

interface Run {
  readonly n: number;
  readonly queue: string | null;
  readonly attempt: number;
}

const jobs = 600;
const seeds = [1, 2, 3, 4, 5, 6, 7, 8];

test.each(seeds)(
  "pools that come and go, quick and slow jobs, queues and failures: nothing is lost or doubled, and queues stay serial and in order (%i)",
  async (seed) => {
    const db = await freshDatabase();
    const roll = dice(seed);
    const specs = Array.from({ length: jobs }, (_, n) => ({
      n,
      queue: roll() < 0.5 ? `q${Math.floor(roll() * 5)}` : null,
      ms: roll() < 0.04 ? 60 : roll() < 0.3 ? 3 : 0,
      failures: roll() < 0.1 ? 1 : 0,
    }));
    const runs: Run[] = [];
    const inside = new Map<string, number>();
    let worst = 0;
    const t = async ({ n }: { n: number }, { job }: JobHelpers): Promise<void> => {
      const { queue, ms, failures } = specs[n]!;
      runs.push({ n, queue, attempt: job.attempts });
      if (queue) {
        inside.set(queue, (inside.get(queue) ?? 0) + 1);
        worst = Math.max(worst, inside.get(queue)!);
      }
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
      if (queue) inside.set(queue, inside.get(queue)! - 1);
      if (job.attempts <= failures) throw new Error("again");
    };
    const options = [
      { concurrency: 4 },
      { concurrency: 1 },
      { concurrency: 3, preset: { worker: { localQueue: { size: 20, ttl: 100 } } } },
      { concurrency: 8, preset: { worker: { completeJobBatchDelay: 2, failJobBatchDelay: 2 } } },
    ];
    // Nine pools come and go: with the usual size they would take a third of the server's connections from other tests.
    const start = (): StartedPool =>
      startPool(db, { t }, { ...options[Math.floor(roll() * options.length)], maxPoolSize: 4 });
    let pools = [start(), start(), start()];
    const losses = (): number => all.reduce((sum, { of }) => sum + of("job:lost").length, 0);
    const all = [...pools];

    for (let from = 0; from < jobs; from += 100) {
      await db.query(
        `select graphile_worker.add_job('t', json_build_object('n', spec.n), spec.queue)
       from json_to_recordset($1) as spec (n int, queue text) order by spec.n`,
        [JSON.stringify(specs.slice(from, from + 100))],
      );
      // One leaves in the middle of things, and another comes.
      const [leaving, ...staying] = pools;
      await leaving!.pool.gracefulShutdown();
      const coming = start();
      all.push(coming);
      pools = [...staying, coming];
    }
    // Those that failed are due soon instead of in seconds.
    await until(async () => {
      await db.query(
        "update graphile_worker._private_jobs set run_at = now() where run_at > now() and locked_at is null",
      );
      await db.query(`select pg_notify('jobs:insert', '{"count":10}')`);
      return (await db.jobs()).length === 0;
    });
    await Promise.all(pools.map(({ pool }) => pool.gracefulShutdown()));

    expect(worst).toBe(1);
    for (const queue of new Set(specs.map((spec) => spec.queue).filter((name) => name !== null))) {
      const order = runs.filter((run) => run.queue === queue && run.attempt === 1).map(({ n }) => n);
      expect(order, `the order of ${queue}`).toEqual(order.toSorted((one, other) => one - other));
    }
    expect(losses()).toBe(0);
    const expected = specs.flatMap(({ n, failures }) =>
      Array.from({ length: failures + 1 }, (_, index) => `${n}/${index + 1}`),
    );
    expect(runs.map(({ n, attempt }) => `${n}/${attempt}`).toSorted()).toEqual(expected.toSorted());
    expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  },
);
