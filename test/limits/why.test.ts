import { expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

test("why names the limit and its key, who holds the places, and the position in line", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const held = heldTask();
  const limits = { stripe: { concurrency: { limit: 2, key: "tenant.id" } } };
  const taskOptions = { charge: { limits: ["stripe"] }, refund: { limits: ["stripe"] } };
  const { pool } = await startWorker(
    db,
    { charge: held.task, refund: held.task },
    { concurrency: 5, limits, taskOptions },
  );
  const add = (task: string, id: string) => utils.addJob(task, { tenant: { id } });
  const [first, second, other] = [await add("charge", "a"), await add("refund", "a"), await add("charge", "b")];
  await held.begun(3);
  const [next, last] = [await add("charge", "a"), await add("refund", "a")];
  const { reasons } = await utils.explainJob(last.id);
  expect(reasons[0]).toMatchObject({
    kind: "limited",
    by: "concurrency",
    limit: "stripe",
    key: "a",
    places: 2,
    taken: 2,
    ahead: 1,
  });
  const by = `pool-${pool().id.replace(/^pool-/, "")}`;
  expect(reasons[0]!.message).toContain("the limit 'stripe' of key 'a': 2 of 2 places are taken");
  expect(reasons[0]!.message).toContain(`job ${first.id} (charge) in ${by}`);
  expect(reasons[0]!.message).toContain(`job ${second.id} (refund) in ${by}`);
  expect(reasons[0]!.message).not.toContain(`job ${other.id} `);
  expect(reasons[0]!.message).toContain("1 due job of this limit is ahead of it");
  expect((await utils.explainJob(next.id)).reasons[0]!.message).toContain("It is next in line");
});

test("why says when a rate lets the next job start, and it does not start before", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const startedAt: number[] = [];
  await startWorker(
    db,
    { call: () => void startedAt.push(Date.now()) },
    { taskOptions: { call: { rateLimit: { limit: 1, period: "8s", key: "k" } } } },
  );
  await utils.addJob("call", { k: "a" });
  await until(() => startedAt.length === 1);
  const [next, last] = [await utils.addJob("call", { k: "a" }), await utils.addJob("call", { k: "a" })];
  const { reasons } = await utils.explainJob(next.id);
  expect(reasons[0]).toMatchObject({
    kind: "limited",
    by: "rate",
    limit: "call",
    key: "a",
    places: 1,
    periodMs: 8_000,
    ahead: 0,
  });
  const { releaseAt } = reasons[0] as { releaseAt: Date };
  expect(reasons[0]!.message).toContain(
    `1 starts in 8 seconds. The next one is admitted at ${releaseAt.toISOString()}, in `,
  );
  expect((await utils.explainJob(last.id)).reasons[0]).toMatchObject({ by: "rate", ahead: 1 });
  await until(() => startedAt.length === 2, { withinMs: 40_000 });
  // The same machine's clock; the start is a little later than the database said.
  expect(startedAt[1]).toBeGreaterThanOrEqual(releaseAt.getTime() - 1);
});

test("the indexes of a new limit are built beside everything else; until then the limit holds and doctor says how far they are", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await db.query(
    "select graphile_worker.add_job('sync', json_build_object('k', n % 3)) from generate_series(1, 30) as n",
  );
  // A build waits for older transactions that have written.
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("update graphile_worker._private_jobs set payload = payload where id = 30");
  const held = heldTask();
  await startWorker(
    db,
    { sync: held.task },
    { concurrency: 10, taskOptions: { sync: { concurrency: { limit: 1, key: "k" } } } },
  );
  const limitsCheck = async () => (await utils.examineHealth()).find(({ name }) => name === "limits")!;
  const building = await until(
    async () => {
      const found = await limitsCheck();
      return /building|waiting/.test(found.message) && found;
    },
    { what: "doctor shows a build" },
  );
  expect(building.status).toBe("warning");
  expect(building.message).toMatch(
    /2 indexes for limits are missing \(_hathi_limit_\w+ of task 'sync': [a-z :]+, \d+ %/,
  );
  const valid = `select from pg_index join pg_class on pg_class.oid = indexrelid where indisvalid and relname ~ '^_hathi_limit_[rw]_'`;
  // The limit holds meanwhile: one job of each key, and no more when more are added. Adding is not held up.
  await held.begun(3);
  await utils.addJob("sync", { k: 7 });
  await held.begun(4);
  expect(await db.query(valid)).toEqual([]);
  expect((await db.jobs()).filter(({ locked_at }) => locked_at !== null)).toHaveLength(4);
  await client.query("rollback");
  client.release();
  await until(async () => (await db.query(valid)).length === 2, { what: "the indexes are built", withinMs: 40_000 });
  expect(await limitsCheck()).toMatchObject({ status: "ok", message: "Limits: 'sync'. Their indexes are built." });
  expect(held.started).toHaveLength(4);
  held.releaseAll();
  await until(async () => (await db.jobs()).length === 0, { withinMs: 40_000 });
});
