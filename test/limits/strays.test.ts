import { expect, onTestFinished, test, vi } from "vitest";
import { freshDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { checkCommits } from "./commit-check.ts";

vi.setConfig({ testTimeout: 60_000 });

/** A job's row stays locked until `letGo`, as by an application that reads it for an update. */
async function holdJobs(url: string): Promise<{ letGo: () => Promise<unknown> }> {
  const pool = testPool(url, 1);
  onTestFinished(() => pool.end());
  await pool.query("begin");
  await pool.query("select from graphile_worker._private_jobs where locked_at is not null for update");
  return { letGo: () => pool.query("rollback") };
}

test("a place that a lost claim has taken is used again once its job is back in line, without a poll", async () => {
  const db = await freshDatabase();
  const check = await checkCommits(db, [{ tasks: ["sync"], places: 1 }]);
  const pool = testPool(db.url);
  onTestFinished(() => pool.end());
  let held: Awaited<ReturnType<typeof holdJobs>> | undefined;
  let blocked = 0;
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as unknown as (...args: unknown[]) => Promise<{ rows: unknown[] }>;
    client.query = (async (...args: unknown[]) => {
      const answer = await query(...args);
      const [row] = answer?.rows ?? [];
      const claim =
        row && typeof row === "object" && "is_blocked" in row ? (row as Record<string, unknown>) : undefined;
      if (held && claim?.["is_blocked"]) blocked++;
      if (held || !claim?.["jobs"]) return answer;
      // Nobody hears of the job, and the search for it finds it held by another transaction.
      held = await holdJobs(db.url);
      throw new Error("Connection terminated unexpectedly");
    }) as unknown as typeof client.query;
  });
  let ran = 0;
  await startWorker(db, { sync: () => void ran++ }, { pgPool: pool, taskOptions: { sync: { concurrency: 1 } } });
  await db.query("select graphile_worker.add_job('sync') from generate_series(1, 3)");
  // The pool has seen that the only place is taken, so new jobs are no reason for it to claim.
  await until(() => blocked > 0);
  expect(ran).toBe(0);
  await held?.letGo();
  await until(() => ran === 3);
  expect(await check.above()).toEqual([]);
});
