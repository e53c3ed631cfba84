import { expect, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { ask } from "../../src/db/statement.ts";
import { registerTasks } from "../../src/db/statements/claim.ts";
import { claimLimitedJobs } from "../../src/db/statements/claim-limited.ts";
import { type DeclaredLimit, declareLimits } from "../../src/db/statements/limits.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { claimParams } from "./claim-params.ts";
import { checkCommits } from "./commit-check.ts";

const limit: DeclaredLimit = {
  scope: "task",
  name: "a",
  kind: "concurrency",
  path: [],
  places: 100,
  period_ms: null,
  burst: 0,
  weight: 1,
  weight_path: null,
  cost: 1,
  cost_path: null,
  tasks: ["a"],
};

async function prepare(more: readonly DeclaredLimit[] = []): Promise<{ db: TestDatabase; taskIds: number[] }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const taskIds = (await database.run(registerTasks, { identifiers: ["a"] })).map(({ id }) => id);
  await database.run(declareLimits, { tasks: ["a"], definitions: [limit, ...more], declaredBy: "test" });
  await db.query("update graphile_worker._hathi_limited_tasks set since = now() - interval '1 hour'");
  await db.query("select graphile_worker.add_job('a', '{\"k\":1}') from generate_series(1, 300)");
  return { db, taskIds };
}

/** A claim of a pool that believes the places to be plenty. */
const paramsOf = (taskIds: readonly number[], wanted: number) => ({ ...claimParams(taskIds, wanted), mayBeLate: true });

test("two claims that take their jobs before they ask for the limit's row never pass the limit together", async () => {
  const { db, taskIds } = await prepare();
  const check = await checkCommits(db, [{ tasks: ["a"], places: 100 }]);
  const [one, other] = [await db.pool.connect(), await db.pool.connect()];
  try {
    await one.query("begin");
    const [first] = await ask(one, claimLimitedJobs, paramsOf(taskIds, 60), db.schema);
    expect(JSON.parse(first!.jobs!)).toHaveLength(60);
    // The other one waits for the row, or has given up and left all to the next claim.
    const [{ pid }] = (await other.query("select pg_backend_pid() as pid")).rows as [{ pid: number }];
    let isOver = false;
    const second = ask(other, claimLimitedJobs, paramsOf(taskIds, 60), db.schema).finally(() => (isOver = true));
    await until(
      async () => isOver || (await db.query("select from pg_locks where pid = $1 and not granted", [pid])).length > 0,
    );
    await one.query("commit");
    const taken = (jobs: string | null): number => JSON.parse(jobs ?? "[]").length;
    const [row] = await second;
    expect([0, 40]).toContain(taken(row!.jobs));
    if (taken(row!.jobs) === 0) {
      const [again] = await ask(other, claimLimitedJobs, paramsOf(taskIds, 60), db.schema);
      expect(taken(again!.jobs)).toBe(40);
    }
    expect(await check.above()).toEqual([]);
    expect(await check.most()).toEqual([100]);
  } finally {
    one.release();
    other.release();
  }
});

test("a claim takes all that the limit allows, although it believed the places to be plenty", async () => {
  const { db, taskIds } = await prepare();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const claim = async (wanted: number) => {
    const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, wanted));
    return {
      taken: JSON.parse(row!.jobs ?? "[]").length as number,
      areWide: row!.are_wide,
    };
  };
  expect(await claim(20)).toEqual({ taken: 20, areWide: true });
  expect(await claim(6)).toEqual({ taken: 6, areWide: false });
  expect(await claim(90)).toEqual({ taken: 74, areWide: false });
  expect(await claim(90)).toEqual({ taken: 0, areWide: false });
});

test.each([
  { kind: "rate" as const, places: 1, period_ms: 3_600_000, burst: 4 },
  { path: ["k"], places: 5 },
])("a limit of another kind that came since the last claim holds all the same (%j)", async (other) => {
  const { db, taskIds } = await prepare([{ ...limit, ...other }]);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, 20));
  expect(JSON.parse(row!.jobs!)).toHaveLength(5);
  expect(row!.are_wide).toBe(false);
});

test("a limit that a job holds back admits nothing, also if that is noticed last", async () => {
  const { db, taskIds } = await prepare();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const areWithin = () =>
    db.query("select graphile_worker._hathi_are_within(array_agg(id)) as are from graphile_worker._hathi_limits");
  expect(await areWithin()).toEqual([{ are: true }]);
  await db.query(
    "insert into graphile_worker._hathi_limit_holds (limit_id, key, until) select id, '*', now() + interval '1 hour' from graphile_worker._hathi_limits",
  );
  expect(await areWithin()).toEqual([{ are: null }]);
  const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, 20));
  expect(row).toMatchObject({ jobs: null, is_blocked: true });
});

test.each([
  { taken: 10, isDurable: false },
  { taken: 60, isDurable: true },
])(
  "whether a claim waits for the disk is decided by all that is taken, also if that is counted last (%j)",
  async ({ taken, isDurable }) => {
    const { db, taskIds } = await prepare();
    await db.query(
      "update graphile_worker._private_jobs set locked_by = 'other', locked_at = now(), attempts = 1 where id <= $1",
      [taken],
    );
    const client = await db.pool.connect();
    try {
      await client.query("begin; set local synchronous_commit = on");
      const [row] = await ask(client, claimLimitedJobs, paramsOf(taskIds, 5), db.schema);
      expect(JSON.parse(row!.jobs!)).toHaveLength(5);
      const { rows } = await client.query("select current_setting('synchronous_commit') as value");
      expect(rows).toEqual([{ value: isDurable ? "on" : "off" }]);
      await client.query("rollback");
    } finally {
      client.release();
    }
  },
);
