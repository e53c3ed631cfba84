import { expect, test } from "vitest";
import { freshDatabase, testPool } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { heldTask, startWorker } from "../kit.ts";

test.each([
  ["succeeds", undefined],
  ["fails", new Error("no")],
])(
  "a job whose lock was taken away while it ran, and that %s, is reported as lost and not touched",
  async (_name, error) => {
    const db = await freshDatabase();
    const held = heldTask();
    const { runner, nth, of } = await startWorker(db, { t: held.task });
    const { id } = await runner.addJob("t", {}, { queueName: "q" });
    await held.begun(1);
    await db.query("update graphile_worker._private_jobs set locked_by = 'pool-other', attempts = 7");
    await db.query("update graphile_worker._private_job_queues set locked_by = 'pool-other'");
    const before = await db.job(id);
    held.release(0, error);
    const lost = await nth("job:lost");
    expect(lost).toMatchObject({ job: { id }, error: error ?? null });
    expect(await db.job(id)).toEqual(before);
    expect(of("job:complete")).toEqual([]);
    expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([
      { locked_by: "pool-other" },
    ]);
  },
);

test("a job that was removed while it ran is reported as lost, and the worker goes on", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, nth, completed } = await startWorker(db, { t: held.task });
  await runner.addJob("t", {});
  await held.begun(1);
  await db.query("delete from graphile_worker._private_jobs");
  held.releaseAll();
  await nth("job:lost");
  await runner.addJob("t", {});
  await completed(1);
});

/** Makes the next writes to the jobs table fail with this SQLSTATE, as often as asked. */
const failWrites = (event: "delete" | "update", code: string, times: number): string => `
  create sequence public.failures;
  create function public.fail_write() returns trigger language plpgsql as $$
  begin
    if ${event === "update" ? "new.locked_at is null and" : ""} nextval('public.failures') <= ${times} then
      raise exception 'made to fail' using errcode = '${code}';
    end if;
    return ${event === "update" ? "new" : "old"};
  end $$;
  create trigger fail_write before ${event} on graphile_worker._private_jobs for each row execute function public.fail_write()`;

test.each([
  ["delete", "40P01"],
  ["delete", "40001"],
  ["update", "40P01"],
  ["update", "40001"],
] as const)("a settle (%s) that meets %s is tried again until it is through", async (event, code) => {
  const db = await freshDatabase();
  await db.query(failWrites(event, code, 5));
  const { runner, completed, of, lines } = await startWorker(db, {
    good: () => undefined,
    bad: () => {
      throw new Error("no");
    },
  });
  await runner.addJob(event === "delete" ? "good" : "bad", {});
  await completed(1);
  expect(of("pool:fatalError")).toEqual([]);
  expect(lines.some(({ message }) => message.includes("made to fail"))).toBe(false);
  expect(await db.query("select last_value::int from public.failures")).toEqual([{ last_value: 6 }]);
});

test("a connection that is cut in the middle of a settle changes nothing for the job", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, completed, of } = await startWorker(db, { t: held.task }, { concurrency: 3 });
  for (let n = 0; n < 3; n++) await runner.addJob("t", {}, { queueName: "q" });
  await held.begun(1);
  // A lock on the table keeps the settle waiting, so that it can be cut.
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("lock table graphile_worker._private_jobs in share mode");
  held.releaseAll();
  await until(
    async () =>
      (
        await db.query(`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%_hathi_%'`)
      ).length > 0,
    { what: "the settle waited and was cut" },
  );
  await client.query("rollback");
  client.release();
  await completed(3);
  expect(of("job:lost")).toEqual([]);
  expect(held.started).toHaveLength(3);
  expect(await db.jobs()).toEqual([]);
});

test("all connections are cut while jobs run: every job ends once, and the worker carries on by itself", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, completed, lines } = await startWorker(db, { t: held.task }, { concurrency: 4 });
  for (let n = 0; n < 4; n++) await runner.addJob("t", {});
  await held.begun(4);
  await db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  held.releaseAll();
  await completed(4);
  await db.query("select graphile_worker.add_job('t')");
  await completed(5);
  expect(held.started).toHaveLength(5);
  expect(lines.filter(({ message }) => message.startsWith("Lost the database")).length).toBeLessThanOrEqual(1);
});

test("a write that can never succeed ends the runner: it says so, and its promise rejects", async () => {
  const db = await freshDatabase();
  const { runner, nth, of, lines } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty");
  await db.query("alter function graphile_worker._hathi_complete_jobs rename to gone");
  await runner.addJob("t", {});
  await expect(runner.promise).rejects.toThrow("_hathi_complete_jobs");
  expect(of("pool:fatalError")).toMatchObject([{ action: "completeJob", error: { code: "42883" } }]);
  expect(of("worker:fatalError")).toMatchObject([{ jobError: null, error: { code: "42883" } }]);
  expect(of("pool:release")).toHaveLength(1);
  expect(lines.some(({ level, message }) => level === "error" && message.includes("cannot go on"))).toBe(true);
  await expect(runner.stop()).rejects.toThrow("already stopped");
}, 60_000);

test("prepared statements that do not survive are given up with one warning, and jobs run all the same", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, 3);
  pgPool.on("connect", (client) => client.on("error", () => undefined));
  const { runner, completed, lines } = await startWorker(db, { t: () => undefined }, { pgPool });
  await runner.addJob("t", {});
  await completed(1);
  // What a pooler does that gives each transaction to another server process.
  const clients = await Promise.all([pgPool.connect(), pgPool.connect()]);
  for (const client of clients) await client.query("deallocate all");
  for (const client of clients) client.release();
  for (let n = 2; n <= 5; n++) {
    await runner.addJob("t", {});
    await completed(n);
  }
  expect(lines.filter(({ level, message }) => level === "warning" && message.startsWith("Prepared"))).toHaveLength(1);
});
