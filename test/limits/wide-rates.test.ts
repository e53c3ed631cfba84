import { expect, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { ask } from "../../src/db/statement.ts";
import { registerTasks } from "../../src/db/statements/claim.ts";
import { type ClaimLimitedRow, claimLimitedJobs, type StartRow } from "../../src/db/statements/claim-limited.ts";
import { type DeclaredLimit, declareLimits } from "../../src/db/statements/limits.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { until } from "../support/wait.ts";
import { claimParams } from "./claim-params.ts";

vi.setConfig({ testTimeout: 60_000 });

/** So slow that no token is due within a test: a burst and one are all there are. */
const rate: DeclaredLimit = {
  scope: "shared",
  name: "s",
  kind: "rate",
  path: [],
  places: 1,
  period_ms: 24 * 3_600_000,
  burst: 499,
  weight: 1,
  weight_path: null,
  cost: 1,
  cost_path: null,
  tasks: ["a", "b"],
};

async function prepare(definitions: readonly DeclaredLimit[]): Promise<{ db: TestDatabase; taskIds: number[] }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const taskIds = (await database.run(registerTasks, { identifiers: ["a", "b"] })).map(({ id }) => id);
  await database.run(declareLimits, { tasks: ["a", "b"], definitions, declaredBy: "test" });
  await db.query("update graphile_worker._hathi_limited_tasks set since = now() - interval '1 hour'");
  await db.query(
    "select graphile_worker.add_job(task, priority => n % 2) from unnest(array['a', 'b']) as task, generate_series(1, 600) as n",
  );
  return { db, taskIds };
}

/** A claim of a pool that believes the tokens to be plenty. */
const paramsOf = (taskIds: readonly number[], wanted: number) => ({ ...claimParams(taskIds, wanted), mayBeLate: true });

const taken = ({ jobs }: ClaimLimitedRow): number => JSON.parse(jobs ?? "[]").length;

/** How many jobs of a claim have a time to start. */
const timed = ({ starts }: ClaimLimitedRow): number[] =>
  (JSON.parse(starts ?? "[]") as StartRow[])
    .flatMap(([before, count]) => Array.from({ length: count }, (_, n) => before + n))
    .toSorted((one, other) => one - other);

test("two claims that take their jobs before they ask for the rate's row never spend more than there is", async () => {
  const { db, taskIds } = await prepare([rate]);
  const [one, other] = [await db.pool.connect(), await db.pool.connect()];
  try {
    await one.query("begin");
    const [first] = await ask(one, claimLimitedJobs, paramsOf(taskIds, 300), db.schema);
    expect(taken(first!)).toBe(300);
    expect(timed(first!)).toEqual(Array.from({ length: 300 }, (_, n) => n));
    // The other one waits for the row, or has given up and left all to the next claim.
    const [{ pid }] = (await other.query("select pg_backend_pid() as pid")).rows as [{ pid: number }];
    let isOver = false;
    const second = ask(other, claimLimitedJobs, paramsOf(taskIds, 300), db.schema).finally(() => (isOver = true));
    await until(
      async () => isOver || (await db.query("select from pg_locks where pid = $1 and not granted", [pid])).length > 0,
    );
    await one.query("commit");
    let left = taken((await second)[0]!);
    if (left === 0) left = taken((await ask(other, claimLimitedJobs, paramsOf(taskIds, 300), db.schema))[0]!);
    // One token less for a moment: the burst has granted time to the first claim.
    expect([199, 200]).toContain(left);
  } finally {
    one.release();
    other.release();
  }
});

test("tokens count as plenty while there are enough for several claims", async () => {
  const { db, taskIds } = await prepare([{ ...rate, burst: 999 }]);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const claim = async (wanted: number) => {
    const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, wanted));
    return { taken: taken(row!), areWide: row!.are_wide };
  };
  expect(await claim(100)).toEqual({ taken: 100, areWide: true });
  expect(await claim(300)).toEqual({ taken: 300, areWide: false });
  expect(await claim(100)).toEqual({ taken: 100, areWide: true });
  expect(await claim(301)).toEqual({ taken: 301, areWide: false });
  expect((await claim(301)).taken).toBeLessThanOrEqual(199);
  expect(await claim(301)).toMatchObject({ areWide: false });
});

test.each([
  { kind: "rate" as const, scope: "task" as const, name: "a", places: 1, burst: 4, cost_path: ["k"] },
  { kind: "rate" as const, scope: "task" as const, name: "a", places: 1, burst: 4 },
  { kind: "concurrency" as const, scope: "task" as const, name: "a", places: 5 },
  { kind: "concurrency" as const, path: ["k"], places: 5 },
])("another limit that came since the last claim holds all the same (%j)", async (other) => {
  const { db, taskIds } = await prepare([rate, { ...rate, ...other, tasks: ["a"] }]);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  await db.query("delete from graphile_worker._private_jobs where task_id = $1", [taskIds[1]]);
  const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, 20));
  expect(taken(row!)).toBe(5);
  expect(timed(row!)).toEqual([0, 1, 2, 3, 4]);
  expect(row!.are_wide).toBe(false);
});

test("jobs of named queues have a time to start as well", async () => {
  const { db, taskIds } = await prepare([rate]);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  await db.query("select graphile_worker.add_job('a', queue_name => 'q' || n) from generate_series(1, 5) as n");
  const [row] = await database.run(claimLimitedJobs, paramsOf(taskIds, 50));
  expect(taken(row!)).toBe(50);
  expect(timed(row!)).toEqual(Array.from({ length: 50 }, (_, n) => n));
});

test("a rate that is held back admits nothing, also if that happens during the claim", async () => {
  const { db, taskIds } = await prepare([rate]);
  const [one, other] = [await db.pool.connect(), await db.pool.connect()];
  try {
    await one.query("begin");
    await one.query("select from graphile_worker._hathi_limits for update");
    const [{ pid }] = (await other.query("select pg_backend_pid() as pid")).rows as [{ pid: number }];
    let isOver = false;
    const claim = ask(other, claimLimitedJobs, paramsOf(taskIds, 20), db.schema).finally(() => (isOver = true));
    await until(
      async () => isOver || (await db.query("select from pg_locks where pid = $1 and not granted", [pid])).length > 0,
    );
    await one.query(
      "insert into graphile_worker._hathi_limit_holds (limit_id, key, until) select id, '*', now() + interval '1 hour' from graphile_worker._hathi_limits",
    );
    await one.query("commit");
    expect((await claim)[0]!.jobs).toBe(null);
    expect(await db.query("select from graphile_worker._private_jobs where locked_at is not null")).toEqual([]);
  } finally {
    one.release();
    other.release();
  }
});

test("four connections that claim at once spend every token once, whatever they believe", async () => {
  const { db, taskIds } = await prepare([rate]);
  const roll = dice(3);
  let total = 0;
  let plenty = 0;
  const claims = async (): Promise<void> => {
    const client = await db.pool.connect();
    try {
      while (total < 500) {
        const params = { ...paramsOf(taskIds, 1 + Math.floor(roll() * 40)), mayBeLate: roll() < 0.8 };
        const [row] = await ask(client, claimLimitedJobs, params, db.schema);
        expect(timed(row!)).toHaveLength(taken(row!));
        total += taken(row!);
        plenty += Number(row!.are_wide);
      }
    } finally {
      client.release();
    }
  };
  await Promise.all([claims(), claims(), claims(), claims()]);
  expect(total).toBe(500);
  expect(plenty).toBeGreaterThan(0);
  expect(await db.query("select from graphile_worker._private_jobs where locked_at is not null")).toHaveLength(500);
});
