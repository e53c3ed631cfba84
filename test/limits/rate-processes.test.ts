import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";

vi.setConfig({ testTimeout: 120_000 });

const recovery = {
  heartbeatInterval: 300,
  sweepInterval: 500,
  sweepThreshold: 3_000,
  recoveryDelay: 0,
  crashGrace: 500,
};

/** The most tokens that were used in any window of a period. */
function most(starts: readonly { readonly at: number; readonly cost: number }[], periodMs: number): number {
  const sums = starts.map(({ at: from }) =>
    starts.filter(({ at }) => at >= from && at < from + periodMs).reduce((sum, { cost }) => sum + cost, 0),
  );
  return Math.max(0, ...sums);
}

test.each([
  { limit: 50, period: "1s", burst: 6 },
  { limit: 50, period: "1s", burst: 1, cost: "cost" },
])("four processes together stay within a rate while some are killed, frozen and cut off (%j)", async (rateLimit) => {
  const db = await freshDatabase();
  const options = { connectionString: db.url, concurrency: 4, recovery, taskOptions: { work: { rateLimit } } };
  const workers: WorkerProcess[] = await Promise.all(Array.from({ length: 4 }, () => startWorker(options)));
  const total = 200;
  await db.query(
    "select graphile_worker.add_job('work', json_build_object('cost', 1 + n % 3)) from generate_series(1, $1::int) as n",
    [total],
  );
  const costs = new Map((await db.jobs()).map(({ id, payload }) => [id, (payload as { cost: number }).cost]));
  const starts = (): { id: string; at: number; cost: number }[] =>
    workers.flatMap((worker) =>
      worker.starts().map(({ id, at }) => ({ id, at, cost: "cost" in rateLimit ? costs.get(id)! : 1 })),
    );
  await until(() => starts().length >= total / 5, { withinMs: 40_000 });
  workers[0]!.kill("SIGKILL");
  workers[1]!.kill("SIGSTOP");
  await until(() => starts().length >= total / 2, { withinMs: 40_000 });
  workers[1]!.kill("SIGCONT");
  await db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and pid % 2 = 0",
  );
  await until(async () => (await db.jobs()).length === 0, { withinMs: 60_000 });
  await until(() => new Set(starts().map(({ id }) => id)).size === total);
  expect(most(starts(), 1_000)).toBeLessThanOrEqual(rateLimit.limit + rateLimit.burst);
});
