import { expect, test } from "vitest";
import { poolDatabase } from "../../../src/db/database.ts";
import { type ClaimedRow, claimJobs } from "../../../src/db/statements/claim.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { startWorker } from "../kit.ts";

async function addFlagged(db: TestDatabase): Promise<void> {
  await db.query(`
    select graphile_worker.add_job('t', json_build_object('name', name), flags => flags)
    from (values ('plain', null), ('a', array['a']), ('b', array['b']), ('ab', array['a', 'b'])) as spec (name, flags)`);
}

const localQueue = { preset: { worker: { localQueue: { size: 10 } } } };
const cases = [
  ["null", { forbiddenFlags: null }, ["plain", "a", "b", "ab"]],
  ["an empty array", { forbiddenFlags: [] }, ["plain", "a", "b", "ab"]],
  ["an array", { forbiddenFlags: ["a"] }, ["plain", "b"]],
  ["a function", { forbiddenFlags: () => ["a", "b"] }, ["plain"]],
  ["a function that gives null", { forbiddenFlags: () => null }, ["plain", "a", "b", "ab"]],
  ["an async function", { forbiddenFlags: async () => ["b"] }, ["plain", "a"]],
  ["accepted flags", { acceptedFlags: ["a"] }, ["a", "ab"]],
  ["accepted and forbidden flags", { acceptedFlags: ["a"], forbiddenFlags: ["b"] }, ["a"]],
] as const;

test.each(
  cases.flatMap(([name, options, expected]) => [
    [name, options, expected] as const,
    [`${name}, with a local queue`, { ...options, ...localQueue }, expected] as const,
  ]),
)("flags: %s", async (_name, options, expected) => {
  const db = await freshDatabase();
  await addFlagged(db);
  const names: string[] = [];
  const { runner, completed } = await startWorker(
    db,
    { t: ({ name }) => void names.push(name) },
    options as Parameters<typeof startWorker>[2],
  );
  await completed(expected.length);
  await runner.stop();
  expect(names).toEqual(expected);
  const left = await db.jobs();
  expect(left).toHaveLength(4 - expected.length);
  expect(left.every(({ attempts, locked_by }) => attempts === 0 && locked_by === null)).toBe(true);
});

test.each([true, false])(
  "flags that an application sets while claims are made are respected (in queues: %s)",
  async (inQueues) => {
    const db = await freshDatabase();
    const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
    await db.query(
      "select graphile_worker.add_job('t', queue_name => case when $1 then 'queue ' || n end) from generate_series(1, 1500) as n",
      [inQueues],
    );
    // Forbids and allows the last jobs, as fast as it can. A claim of them all locks those a good while after it has read them.
    let isOver = false;
    const setting = [0, 1, 2].map(async (third) => {
      while (!isOver) {
        await db.query(
          `update graphile_worker._private_jobs set flags = case when flags is null then '{"a": true}'::jsonb end
           where id in (select id from graphile_worker._private_jobs
             where locked_at is null and id > 1400 and id % 3 = $1 for update skip locked)`,
          [third],
        );
      }
    });
    const claimed: ClaimedRow[] = [];
    for (let n = 0; n < 4; n++) {
      const [result] = await database.run(claimJobs, {
        poolId: "pool",
        taskIds: [1],
        wanted: 1_500,
        perQueue: 1,
        forbidden: ["a"],
        accepted: null,
        clock: null,
        marks: [],
        withQueues: true,
        relaxed: true,
      });
      claimed.push(...(JSON.parse(result!.jobs ?? "[]") as ClaimedRow[]));
      // Everything comes back, so that the next claim takes as long.
      await db.query(
        "update graphile_worker._private_jobs set locked_by = null, locked_at = null, attempts = 0 where locked_at is not null",
      );
      await db.query("update graphile_worker._private_job_queues set locked_by = null, locked_at = null");
    }
    isOver = true;
    await Promise.all(setting);
    expect(claimed.length).toBeGreaterThan(1_400);
    expect(claimed.filter((row) => row[13] !== null)).toEqual([]);
  },
);

test("the flags are asked for before every look", async () => {
  const db = await freshDatabase();
  let forbidden: string[] | null = ["a"];
  const { runner, completed, pool, nth } = await startWorker(
    db,
    { t: () => undefined },
    { forbiddenFlags: async () => forbidden },
  );
  await nth("worker:getJob:empty");
  await runner.addJob("t", {}, { flags: ["a"] });
  await nth("worker:getJob:empty", 2);
  forbidden = null;
  pool().nudge(1);
  await completed(1);
});

test("a function for flags that throws is reported, and asked again", async () => {
  const db = await freshDatabase();
  let isBroken = true;
  const { runner, completed, nth, pool } = await startWorker(
    db,
    { t: () => undefined },
    {
      forbiddenFlags: () => {
        if (isBroken) throw new Error("no flags today");
        return null;
      },
    },
  );
  await runner.addJob("t", {});
  const { error } = await nth("worker:getJob:error");
  expect(error).toMatchObject({ message: "no flags today" });
  isBroken = false;
  pool().nudge(1);
  await completed(1);
});
