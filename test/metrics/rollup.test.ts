import { expect, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { type ReadRollupParams, type RollupRow, readRollup } from "../../src/db/statements/metrics.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { monotonicMs } from "../../src/util/timers.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";
import { parse, sample } from "./kit.ts";

vi.setConfig({ testTimeout: 60_000 });

function readAs(db: TestDatabase, params: Partial<ReadRollupParams> = {}): Promise<RollupRow> {
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const defaults = { reader: "a", maxAgeMs: 5_000, warnAfterSeconds: 300, cap: 10_000, maxTasks: 200, maxPages: 1_024 };
  return database.run(readRollup, { ...defaults, ...params }).then(([row]) => row!);
}

const refreshes = async (db: TestDatabase): Promise<number> =>
  Number((await db.query("select refreshes from graphile_worker._hathi_rollup"))[0]!.refreshes);

test("every process exports the jobs of the whole table by task and state, and how long the oldest has waited", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job('wait') from generate_series(1, 3);
    select graphile_worker.add_job('wait', queue_name => 'q' || n) from generate_series(1, 2) as n;
    select graphile_worker.add_job('wait', priority => 5, run_at => now() - interval '1 hour');
    select graphile_worker.add_job('wait', run_at => now() + interval '1 hour') from generate_series(1, 4);
    select graphile_worker.add_job('dead', max_attempts => 1);
    update graphile_worker._private_jobs set attempts = 1 where max_attempts = 1`);
  const held = heldTask();
  const metrics = [makeMetrics(), makeMetrics()];
  for (const each of metrics) await startWorker(db, { hold: held.task }, { metrics: each });
  await db.query("select graphile_worker.add_job('hold')");
  await held.begun(1);
  await db.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
  const value = async (index: number, state: string, task: string): Promise<number | undefined> =>
    sample(await metrics[index]!.prometheus(), "hathi_jobs", { state, task });
  for (const index of [0, 1]) {
    await until(async () => (await value(index, "running", "hold")) === 1);
    expect(await value(index, "waiting", "wait")).toBe(6);
    expect(await value(index, "scheduled", "wait")).toBe(4);
    expect(await value(index, "dead", "dead")).toBe(1);
    expect(await value(index, "waiting", "dead")).toBe(0);
  }
  const text = await metrics[0]!.prometheus();
  const oldest = sample(text, "hathi_oldest_runnable_seconds", { task: "wait" })!;
  expect(oldest).toBeGreaterThanOrEqual(3_600);
  expect(oldest).toBeLessThan(3_700);
  expect(sample(text, "hathi_oldest_runnable_seconds", { task: "dead" })).toBe(0);
  expect(sample(text, "hathi_table_bytes")).toBeGreaterThan(0);
  expect(sample(text, "hathi_rollup_age_seconds")).toBeLessThan(60);
  expect(parse(text).filter(({ name }) => name === "hathi_jobs_capped")).toEqual([]);
});

test("forty processes ask once a second together, and one of them collects", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('work')");
  const startedAt = monotonicMs();
  for (let index = 1; index <= 40; index++) {
    const row = await readAs(db, { reader: `process ${index}` });
    expect(row.data.tasks).toMatchObject([{ task: "work", waiting: 1 }]);
    expect(row.read_in_ms).toBe(Math.max(5_000, index * 1_000));
  }
  expect(await refreshes(db)).toBeLessThanOrEqual(1 + (monotonicMs() - startedAt) / 5_000);

  // Whoever has not asked for ten minutes is gone.
  await db.query("update graphile_worker._hathi_rollup_readers set read_at = now() - interval '11 minutes'");
  await db.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
  await readAs(db);
  expect((await readAs(db)).read_in_ms).toBe(5_000);
  expect(await db.query("select reader from graphile_worker._hathi_rollup_readers")).toEqual([{ reader: "a" }]);
});

test("workers that run together share what one of them has collected", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('elsewhere')");
  const startedAt = monotonicMs();
  const metrics = Array.from({ length: 5 }, () => makeMetrics());
  for (const each of metrics) await startWorker(db, { work: () => undefined }, { metrics: each });
  const elsewhere = { task: "elsewhere", state: "waiting" };
  for (const each of metrics) {
    await until(async () => sample(await each.prometheus(), "hathi_jobs", elsewhere) === 1);
    for (let scrape = 0; scrape < 50; scrape++) await each.prometheus();
  }
  expect(await refreshes(db)).toBeLessThanOrEqual(1 + (monotonicMs() - startedAt) / 5_000);
});

test("a process takes the figures that there are while another one collects", async () => {
  const db = await freshDatabase();
  await readAs(db);
  await db.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
  const client = await db.pool.connect();
  try {
    await client.query("begin; select from graphile_worker._hathi_rollup for update");
    const row = await readAs(db, { reader: "b" });
    expect(row.data.tasks).toEqual([]);
    expect(await refreshes(db)).toBe(1);
  } finally {
    await client.query("rollback");
    client.release();
  }
  await readAs(db, { reader: "b" });
  expect(await refreshes(db)).toBe(2);
});

test("there are no figures while they are collected for the first time", async () => {
  const db = await freshDatabase();
  const client = await db.pool.connect();
  try {
    await client.query("begin; select from graphile_worker._hathi_rollup for update");
    expect(await readAs(db)).toMatchObject({ data: {}, age_ms: null });
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("counting ends at a cap, and reads no more for more jobs", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job('much'), graphile_worker.add_job('little');
    insert into graphile_worker._private_jobs (task_id, payload, priority)
    select (select id from graphile_worker._private_tasks where identifier = 'much'), '{}', n % 3
    from generate_series(1, 100000) as n`);
  await db.query("vacuum analyze graphile_worker._private_jobs");
  const { data } = await readAs(db, { cap: 50 });
  expect(data.tasks).toHaveLength(2);
  expect(data.tasks).toContainEqual(expect.objectContaining({ task: "much", waiting: 50, isCapped: true }));
  expect(data.tasks).toContainEqual(expect.objectContaining({ task: "little", waiting: 1, isCapped: false }));
  expect(data.isSampled).toBe(true);
  const plan = await db.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    "explain (analyze, buffers, format json) select graphile_worker._hathi_collect_rollup(50, 200, 16)",
  );
  const { "Shared Hit Blocks": hit = 0, "Shared Read Blocks": read = 0 } = plan[0]!["QUERY PLAN"][0].Plan;
  // The table has more than a thousand pages.
  expect(hit + read).toBeLessThan(600);
});

test("jobs that wait for a limit, and places used, are counted by its name; without limits there is nothing", async () => {
  const db = await freshDatabase();
  expect((await readAs(db)).data.limits).toEqual([]);
  const held = heldTask();
  const metrics = makeMetrics();
  await startWorker(
    db,
    { charge: held.task, refund: held.task, free: () => undefined },
    {
      metrics,
      concurrency: 8,
      limits: { stripe: { concurrency: 3 } },
      taskOptions: {
        charge: { limits: ["stripe"] },
        refund: { limits: ["stripe"], concurrency: [{ limit: 1 }, { limit: 1, key: "k" }] },
      },
    },
  );
  await db.query(`
    select graphile_worker.add_job('refund') from generate_series(1, 4);
    select graphile_worker.add_job('charge', queue_name => 'q' || n) from generate_series(1, 5) as n;
    select graphile_worker.add_job('charge', run_at => now() + interval '1 hour'), graphile_worker.add_job('free')`);
  await held.begun(3);
  const counted = async (name: string, scope: string, limit: string): Promise<number | undefined> =>
    sample(await metrics.prometheus(), name, { scope, limit });
  await db.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
  await until(async () => (await counted("hathi_limit_running", "shared", "stripe")) === 3);
  expect(await counted("hathi_limit_waiting", "shared", "stripe")).toBe(6);
  const refunds = held.started.filter(({ task_identifier }) => task_identifier === "refund").length;
  expect(await counted("hathi_limit_running", "task", "refund")).toBe(refunds);
  expect(await counted("hathi_limit_waiting", "task", "refund")).toBe(4 - refunds);
  const all = parse(await metrics.prometheus()).filter(({ name }) => name === "hathi_limit_waiting");
  expect(all.map(({ labels }) => labels["limit"])).toEqual(["stripe", "refund"]);

  // Of locked jobs, too, no more than so many are read.
  const built = `
    select from pg_index join pg_class on pg_class.oid = indexrelid
    where indisvalid and relname like '\\_hathi\\_limit\\_r\\_%'`;
  await until(async () => (await db.query(built)).length === 3, { what: "the indexes are built" });
  await db.query(`
    insert into graphile_worker._private_jobs (task_id, payload, locked_at, locked_by)
    select id, '{}', now(), 'somebody' from graphile_worker._private_tasks, generate_series(1, 100) where identifier = 'refund'`);
  await db.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
  const { limits } = (await readAs(db, { cap: 20 })).data;
  expect(limits).toContainEqual({ scope: "task", limit: "refund", waiting: 4 - refunds, running: 20 });
});
