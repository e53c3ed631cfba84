import { expect, onTestFinished, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { ask, forSchema } from "../../src/db/statement.ts";
import { registerTasks } from "../../src/db/statements/claim.ts";
import { type ClaimLimitedRow, claimLimitedJobs } from "../../src/db/statements/claim-limited.ts";
import { declareLimits } from "../../src/db/statements/limits.ts";
import { completeJobs } from "../../src/db/statements/settle.ts";
import { andClaim } from "../../src/db/statements/settle-and-claim.ts";
import { countedPool } from "../support/counted-pool.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { claimParams } from "./claim-params.ts";
import { checkCommits } from "./commit-check.ts";

vi.setConfig({ testTimeout: 60_000 });

const isHandingOn = (text: string): boolean => text.includes("as claimed on true");

test.each([{ concurrency: 1 }, { concurrency: { limit: 1, key: "k" } }])(
  "the statement that settles a job takes the place that it frees, and nothing is ever above the limit (%j)",
  async (options) => {
    const db = await freshDatabase();
    const check = await checkCommits(db, [{ tasks: ["sync"], places: 1 }]);
    const { pool, sent } = countedPool(db.url);
    onTestFinished(() => pool.end());
    let ran = 0;
    await startWorker(db, { sync: () => void ran++ }, { pgPool: pool, concurrency: 3, taskOptions: { sync: options } });
    // A claim that took long is not made by the way, which may happen on a busy machine.
    for (let added = 0; !sent.some(isHandingOn); ) {
      await db.query(`select graphile_worker.add_job('sync', '{"k":1}') from generate_series(1, 12)`);
      added += 12;
      await until(() => ran === added, { withinMs: 40_000 });
    }
    await until(async () => (await db.jobs()).length === 0);
    expect(await check.above()).toEqual([]);
  },
);

test("failed jobs hand their places on as well, and a worker with a place to spare does not", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url);
  onTestFinished(() => pool.end());
  let ran = 0;
  await startWorker(
    db,
    {
      sync: () => {
        ran++;
        throw new Error("no");
      },
      free: () => void ran++,
    },
    { pgPool: pool, concurrency: 2, taskOptions: { sync: { concurrency: 1 } } },
  );
  await db.query("select graphile_worker.add_job('free') from generate_series(1, 20)");
  await until(() => ran === 20);
  expect(sent.filter(isHandingOn)).toEqual([]);
  for (let added = 20; !sent.some((text) => isHandingOn(text) && text.includes("_hathi_fail_jobs")); ) {
    await db.query("select graphile_worker.add_job('sync', max_attempts => 1) from generate_series(1, 10)");
    added += 10;
    await until(() => ran === added, { withinMs: 40_000 });
  }
});

test("jobs that were claimed by an answer that never arrived are found again", async () => {
  const db = await freshDatabase();
  const { pool } = countedPool(db.url);
  onTestFinished(() => pool.end());
  let isLost = false;
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as unknown as (...args: unknown[]) => Promise<unknown>;
    client.query = (async (...args: unknown[]) => {
      const answer = await query(...args);
      if (isLost || !isHandingOn(String((args[0] as { text?: string }).text))) return answer;
      isLost = true;
      throw new Error("Connection terminated unexpectedly");
    }) as unknown as typeof client.query;
  });
  const ran: string[] = [];
  const check = await checkCommits(db, [{ tasks: ["sync"], places: 1 }]);
  await startWorker(
    db,
    { sync: (_payload, { job }) => void ran.push(job.id) },
    { pgPool: pool, concurrency: 3, taskOptions: { sync: { concurrency: 1 } } },
  );
  let added = 0;
  while (!isLost) {
    await db.query("select graphile_worker.add_job('sync') from generate_series(1, 8)");
    added += 8;
    await until(async () => (await db.jobs()).length === 0, { withinMs: 40_000 });
  }
  expect(ran.map(Number).toSorted((one, other) => one - other)).toEqual(Array.from({ length: added }, (_, n) => n + 1));
  expect(await check.above()).toEqual([]);
});

async function prepare(places: number) {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const taskIds = (await database.run(registerTasks, { identifiers: ["a"] })).map(({ id }) => id);
  const limit = { scope: "task", name: "a", kind: "concurrency", path: [], places, period_ms: null } as const;
  const rest = { burst: 0, weight: 1, weight_path: null, cost: 1, cost_path: null, tasks: ["a"] };
  await database.run(declareLimits, { tasks: ["a"], definitions: [{ ...limit, ...rest }], declaredBy: "test" });
  await db.query("update graphile_worker._hathi_limited_tasks set since = now() - interval '1 hour'");
  await db.query("select graphile_worker.add_job('a') from generate_series(1, 3)");
  await db.query(
    "update graphile_worker._private_jobs set locked_by = 'pool', locked_at = now(), attempts = 1 where id = 1",
  );
  const claim = { ...claimParams(taskIds, 1), relaxed: false };
  return { db, database, claim, settled: { poolId: "pool", jobIds: ["1"], queueIds: null } };
}

test("the claim comes after the settle: a limit of one is not in its way", async () => {
  const { db, database, claim, settled } = await prepare(1);
  const [row] = await database.run(andClaim(completeJobs, false), { settled, claim });
  expect((JSON.parse((row as ClaimLimitedRow).jobs!) as [string][]).map(([id]) => id)).toEqual(["2"]);
  expect((await db.jobs()).map(({ id, locked_by }) => [id, locked_by])).toEqual([
    ["2", "pool"],
    ["3", null],
  ]);
});

test("a worker that the database does not know as alive settles, and claims nothing", async () => {
  const { db, database, claim, settled } = await prepare(1);
  const [row] = await database.run(andClaim(completeJobs, true), { settled, claim });
  expect(row).toMatchObject({ lost: null, held: null, took_ms: null, jobs: null });
  expect((await db.jobs()).map(({ id, locked_at }) => [id, locked_at])).toEqual([
    ["2", null],
    ["3", null],
  ]);
  await db.query("insert into graphile_worker._private_workers (id, last_heartbeat_at) values ('pool', now())");
  const [alive] = await database.run(andClaim(completeJobs, true), { settled: { ...settled, jobIds: [] }, claim });
  expect(JSON.parse((alive as ClaimLimitedRow).jobs!)).toHaveLength(1);
});

test.each([
  { places: 1, isClaimDurable: true },
  { places: 9, isClaimDurable: false },
])(
  "what is settled survives a crash of the server, even if a claim alone need not (%j)",
  async ({ places, isClaimDurable }) => {
    const { db, claim, settled } = await prepare(places);
    const client = await db.pool.connect();
    try {
      const isDurable = async (): Promise<boolean> =>
        (await client.query("select current_setting('synchronous_commit') as value")).rows[0].value !== "off";
      const begin = "begin; set local synchronous_commit = on";
      await client.query(begin);
      const [row] = await ask(client, andClaim(completeJobs, false), { settled, claim }, db.schema);
      expect(JSON.parse((row as ClaimLimitedRow).jobs!)).toHaveLength(1);
      expect(await isDurable()).toBe(true);
      await client.query(`rollback; ${begin}`);
      await client.query(forSchema("delete from graphile_worker._private_jobs where id = 1", db.schema));
      await ask(client, claimLimitedJobs, { ...claim, relaxed: true }, db.schema);
      expect(await isDurable()).toBe(isClaimDurable);
      await client.query("rollback");
    } finally {
      client.release();
    }
  },
);
