import { expect, onTestFinished, test, vi } from "vitest";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { registerTasks } from "../../src/db/statements/claim.ts";
import { claimLimitedJobs } from "../../src/db/statements/claim-limited.ts";
import { declareLimits } from "../../src/db/statements/limits.ts";
import { makeWorkerUtils, runOnce } from "../../src/index.ts";
import { testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { startPrivateServer } from "../support/private-server.ts";
import { claimParams } from "./claim-params.ts";

vi.setConfig({ testTimeout: 90_000 });

const places = 10;
const total = 30;

async function claim(database: Database, taskIds: readonly number[], wanted: number): Promise<string[]> {
  const [row] = await database.run(claimLimitedJobs, claimParams(taskIds, wanted));
  return row!.jobs === null ? [] : (JSON.parse(row!.jobs) as [string][]).map(([id]) => id);
}

test("a crash of the server forgets claims under a limit with places to spare, and nothing else: no job, no scarce place", async () => {
  // Nothing is flushed by itself: what does not wait for the disk is not on it for ten seconds.
  const server = await startPrivateServer({ wal_writer_delay: 10_000 });
  onTestFinished(() => server.remove());
  const { logger } = rememberingLogger();
  const utils = await makeWorkerUtils({ connectionString: server.url, logger });
  await utils.addJobs(Array.from({ length: total }, (_, n) => ({ identifier: "a", payload: { n } })));
  await utils.release();
  const pool = testPool(server.url, 1);
  const database = poolDatabase(pool, { schema: "graphile_worker", preparedStatements: false });
  const taskIds = (await database.run(registerTasks, { identifiers: ["a"] })).map(({ id }) => id);
  const limit = { scope: "task", name: "a", kind: "concurrency", path: [], places, period_ms: null } as const;
  const rest = { burst: 0, weight: 1, weight_path: null, cost: 1, cost_path: null, tasks: ["a"] };
  await database.run(declareLimits, { tasks: ["a"], definitions: [{ ...limit, ...rest }], declaredBy: "test" });
  await pool.query("update graphile_worker._hathi_limited_tasks set since = now() - interval '1 hour'");
  const jobs = async (): Promise<{ id: string; attempts: number; locked_by: string | null }[]> =>
    (await pool.query("select id, attempts, locked_by from graphile_worker._private_jobs order by id")).rows;
  const locked = async (): Promise<string[]> =>
    (await jobs()).filter(({ locked_by }) => locked_by === "pool").map(({ id }) => id);
  const crash = async (): Promise<void> => {
    await server.restart("immediate");
    await pool.query("select 1").catch(() => undefined); // of a connection that is gone
  };

  // Less than half of the places: the claim need not last. It does if the server happens to write at that moment; then once more.
  for (let forgotten = 0; forgotten === 0; ) {
    expect(await claim(database, taskIds, 3)).toHaveLength(3);
    await crash();
    const rows = await jobs();
    expect(rows).toHaveLength(total);
    const kept = rows.filter(({ locked_by }) => locked_by === "pool");
    expect(rows.filter(({ locked_by, attempts }) => attempts !== (locked_by === null ? 0 : 1))).toEqual([]);
    forgotten = 3 - kept.length;
    await pool.query("update graphile_worker._private_jobs set locked_by = null, locked_at = null, attempts = 0");
  }

  // More than half: each of the places that are left is taken for good.
  const claimed = await claim(database, taskIds, 6);
  expect(claimed).toHaveLength(6);
  await crash();
  expect(await locked()).toEqual(claimed);
  const more = await claim(database, taskIds, total);
  expect(more).toHaveLength(places - 6);
  await crash();
  expect((await locked()).toSorted()).toEqual([...claimed, ...more].toSorted());
  expect(await claim(database, taskIds, total)).toEqual([]);

  await pool.query("select graphile_worker.force_unlock_workers(array['pool'])");
  const ran = new Set<string>();
  await runOnce(
    { connectionString: server.url, logger, noHandleSignals: true, concurrency: 4 },
    { a: (_payload, { job }) => void ran.add(job.id) },
  );
  expect(ran.size).toBe(total);
  expect(await jobs()).toEqual([]);
});
