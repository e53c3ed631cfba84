import { expect, test, vi } from "vitest";
import { LimitedClaims, type LimitedClaimsOptions } from "../../src/worker/claim/limited-claims.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

test.each([{ concurrency: 1 }, { rateLimit: { limit: 60_000, period: "1m" } }])(
  "limited jobs are not forgotten in a pool that has no idle slot when it looks for them (%j)",
  async (limit) => {
    const db = await freshDatabase();
    const total = 10_000;
    const ran = { plain: 0, limited: 0 };
    await db.query(`select graphile_worker.add_job('limited') from generate_series(1, 5);
      select graphile_worker.add_job('plain') from generate_series(1, ${total})`);
    await startWorker(
      db,
      { plain: () => void ran.plain++, limited: () => void ran.limited++ },
      { concurrency: 2, taskOptions: { limited: limit } },
    );
    await until(() => ran.plain === total && ran.limited === 5, { withinMs: 40_000 });
  },
);

test("a claim without an idle slot is for one job, and for idle slots otherwise", async () => {
  const asked: { wanted: number; ahead: number }[] = [];
  const limits = new LimitedClaims({
    database: {
      run: async (_statement: unknown, params: (typeof asked)[0]) => {
        asked.push(params);
        return [];
      },
    },
    lateness: { byTask: {} },
  } as unknown as LimitedClaimsOptions);
  const who = { poolId: "pool", workerNames: [], taskIds: [1], forbidden: null, accepted: null, clock: null };
  for (const [jobs, idle] of [[20, 0] as const, [20, 2] as const, [1, 0] as const]) {
    await limits.claim(who, { jobs, idle, perQueue: 1 }, false);
  }
  expect(asked.map(({ wanted, ahead }) => [wanted, ahead])).toEqual([
    [1, 19],
    [2, 18],
    [1, 0],
  ]);
});
