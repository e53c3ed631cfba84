import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

const partitions = async (db: TestDatabase): Promise<string[]> => {
  const rows = await db.query<{ name: string }>(`
    select class.relname as name from pg_inherits join pg_class as class on class.oid = inhrelid
    where class.relkind = 'r' and class.relname like '\\_hathi\\_history%' and class.relname not like '%rest' order by 1`);
  return rows.map(({ name }) => name);
};

/** Tends until there is nothing more to do, as a worker would do on that day. */
async function tend(db: TestDatabase, days: number[], today: string): Promise<void> {
  for (;;) {
    const [row] = await db.query("select graphile_worker._hathi_tend_history_on($1, $2) as more", [days, today]);
    if (!row!.more) return;
  }
}

const add = (db: TestDatabase, id: number, today: string, days: number): Promise<unknown> =>
  db.query(
    `insert into graphile_worker._hathi_history_batches
       (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
     values ($2::date + 1 + $3::integer, $2::date + interval '1 minute', 1, 't', 'w', $1, $1, array[$1::bigint], '{1}', '{1}')`,
    [id, today, days],
  );

const kept = async (db: TestDatabase): Promise<number[]> => {
  const rows = await db.query<{ id: string }>(
    "select first_id as id from graphile_worker._hathi_history_batches order by 1",
  );
  return rows.map(({ id }) => Number(id));
};

const day = (number: number): string => new Date(Date.UTC(2027, 0, number)).toISOString().slice(0, 10);

test("over weeks each task's jobs are kept for as long as it says, in as many partitions as there are days", async () => {
  const db = await freshDatabase();
  for (let today = 1; today <= 40; today++) {
    await tend(db, [1, 14], day(today));
    await add(db, today, day(today), 1);
    await add(db, 1_000 + today, day(today), 14);
    await db.query(
      `insert into graphile_worker._hathi_error_groups values ($1::date + 1 + 14, 'f', 0, 'task', 'Error', 1, now(), now())`,
      [day(today)],
    );
    // Both of yesterday's are there for the whole of the next day, and the longer ones for fourteen.
    const ids = await kept(db);
    const since = (days: number): number[] =>
      Array.from({ length: Math.min(today, days + 1) }, (_, index) => today - index).reverse();
    expect(ids.filter((id) => id < 1_000)).toEqual(since(1));
    expect(ids.filter((id) => id > 1_000).map((id) => id - 1_000)).toEqual(since(14));
    expect((await partitions(db)).length).toBeLessThanOrEqual(2 * (14 + 4));
    expect(await db.query("select from graphile_worker._hathi_error_groups")).toHaveLength(since(14).length);
  }
  expect(await db.query("select from graphile_worker._hathi_history_batches_rest")).toEqual([]);
});

test("a day without a partition goes to the default one, stays readable there, and expires", async () => {
  const db = await freshDatabase();
  await add(db, 1, day(1), 1);
  await tend(db, [1], day(1));
  expect(await kept(db)).toEqual([1]);
  // That day has no partition of its own any more; the next ones have.
  expect(await partitions(db)).not.toContain("_hathi_history_batches_20270103");
  expect(await partitions(db)).toContain("_hathi_history_batches_20270104");
  await tend(db, [1], day(2));
  expect(await kept(db)).toEqual([1]);
  await tend(db, [1], day(3));
  expect(await kept(db)).toEqual([]);
});

test("a partition that somebody reads is dropped later, and the statement that wanted to gives up soon", async () => {
  const db = await freshDatabase();
  await tend(db, [1], day(1));
  await add(db, 1, day(1), 1);
  const reader = await db.pool.connect();
  try {
    await reader.query("begin");
    await reader.query("select count(*) from graphile_worker._hathi_history_batches");
    const [row] = await db.query("select graphile_worker._hathi_tend_history_on('{}', $1) as more", [day(9)]);
    expect(row).toEqual({ more: false });
    expect(await kept(db)).toEqual([1]);
    await reader.query("rollback");
  } finally {
    reader.release();
  }
  await tend(db, [], day(9));
  expect(await kept(db)).toEqual([]);
  expect(await partitions(db)).toEqual([]);
});

const make = (table: string): string => `
  create table graphile_worker.${table}_new (like graphile_worker.${table} including all);
  alter table graphile_worker.${table} attach partition graphile_worker.${table}_new
    for values from ('2010-01-01') to ('2200-01-01');`;
const complete = (kept: string): string => `
  select graphile_worker._hathi_complete_in(id, 'pool', 1::smallint, null, '1 minute', 1, null, '${kept}', 1, 1, '{}')
  from graphile_worker._private_jobs`;
const link = "select graphile_worker._hathi_link_jobs('{1}', '{2}', '{1}')";

test.each([
  ["completes a job", "making", make("_hathi_history_batches"), complete("outcomes"), "_hathi_history_batches"],
  ["completes a job", "making", make("_hathi_history_attempts"), complete("full"), "_hathi_history_attempts"],
  [
    "completes a job",
    "dropping",
    "drop table graphile_worker._hathi_history_batches_20000101;",
    complete("outcomes"),
    "_hathi_history_batches",
  ],
  ["adds a job", "making", make("_hathi_job_links"), link, "_hathi_job_links"],
])("a transaction that %s does not fail while a worker is %s a partition", async (_does, _is, tending, text, table) => {
  const db = await freshDatabase();
  await tend(db, [1], "1999-12-30");
  await db.query("select graphile_worker.add_job('t')");
  await db.query("update graphile_worker._private_jobs set locked_by = 'pool', locked_at = now(), attempts = 1");
  const [tender, caller] = [await db.pool.connect(), await db.pool.connect()];
  try {
    await tender.query("begin");
    await tender.query(tending);
    await caller.query("begin");
    const { rows } = await caller.query<{ pid: number }>("select pg_backend_pid() as pid");
    const written = caller.query(text);
    await until(
      async () => {
        const waiting = await db.query("select from unnest(pg_blocking_pids($1))", [rows[0]!.pid]);
        return waiting.length > 0;
      },
      { what: "the caller waits for the partition" },
    );
    await tender.query("commit");
    await written;
    await caller.query("commit");
  } finally {
    tender.release();
    caller.release();
  }
  expect(await db.query(`select from graphile_worker.${table}`)).toHaveLength(1);
});

test("workers make the partitions for what their tasks keep, ahead of time, and only once between them", async () => {
  const db = await freshDatabase();
  const options = {
    history: "outcomes",
    retention: { completed: "2d" },
    taskOptions: { long: { retention: { failed: "30d" } }, off: { history: "off" } },
  } as const;
  const tasks = { t: () => undefined, long: () => undefined, off: () => undefined };
  const [{ lines, runner }] = await Promise.all([startWorker(db, tasks, options), startWorker(db, tasks, options)]);
  // The days for 2, 14 and 30 days of retention, each for today and two more, in both tables.
  await until(async () => (await partitions(db)).length === 3 * 3 * 2, { what: "all partitions are made" });
  await runner.addJob("t", {});
  // Either of the two workers runs it.
  const row = await until(async () => {
    const rows = await db.query<{ part: string; left: number }>(`
      select tableoid::regclass::text as part, expires_on - (settled_at at time zone 'utc')::date as left from graphile_worker._hathi_history_batches`);
    return rows[0];
  });
  expect(row).toMatchObject({ part: expect.stringMatching(/_\d{8}$/), left: 3 });
  expect(lines.filter(({ level }) => level === "warning" || level === "error")).toEqual([]);
});

test("outcomes wait a moment for the partitions of today, which another worker makes", async () => {
  const db = await freshDatabase();
  await db.query(
    "select graphile_worker.add_job(task, max_attempts => 1) from unnest('{good,bad}'::text[]) as task, generate_series(1, 40)",
  );
  const keptIn = (table: string): Promise<unknown[]> =>
    db.query(`
      select sum(${table === "batches" ? "cardinality(job_ids)" : "1"})::int as jobs, tableoid::regclass::text ~ '_\\d{8}$' as is_placed
      from graphile_worker._hathi_history_${table} group by 2`);
  let runs = 0;
  const tasks = {
    good: () => void runs++,
    bad: () => {
      runs++;
      throw new Error("no");
    },
  };
  const other = await db.pool.connect();
  try {
    await other.query(
      "begin; select pg_advisory_xact_lock(19, 'graphile_worker._hathi_history_batches'::regclass::oid::integer)",
    );
    const { completed } = await startWorker(db, tasks, { history: "outcomes", concurrency: 10 });
    await until(() => runs === 80, { what: "all jobs have run" });
    expect([await keptIn("batches"), await keptIn("attempts")]).toEqual([[], []]);
    await other.query("rollback");
    await completed(80);
  } finally {
    other.release();
  }
  expect(await keptIn("batches")).toEqual([{ jobs: 40, is_placed: true }]);
  expect(await keptIn("attempts")).toEqual([{ jobs: 40, is_placed: true }]);
});
