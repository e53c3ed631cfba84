import { expect, onTestFinished, test } from "vitest";
import { run } from "../../src/index.ts";
import { graceMs, Witness } from "../../src/recovery/witness.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { addJob, quickly } from "./kit.ts";

const settings = { ...quickly, heartbeatInterval: 200, sweepInterval: 200, sweepThreshold: 4_000, crashGrace: 500 };

/** Lets the server take no heartbeats while the table `outage` has a row. */
async function prepareOutages(database: TestDatabase): Promise<void> {
  await database.pool.query(`
    create table outage ();
    create function refuse() returns trigger language plpgsql as $$
    begin
      if exists (select from public.outage) then
        raise exception 'cannot execute UPDATE in a read-only transaction' using errcode = '25006';
      end if;
      return null;
    end $$;
    create trigger refuse before update on graphile_worker._private_workers for each statement execute function refuse();`);
}

/** A worker that takes no part by itself, with a job; `key` is that of a lock that is held by no session. */
async function addWorker(database: TestDatabase, id: string, key: number | null): Promise<string> {
  await database.query("insert into graphile_worker._private_workers values ($1, now(), now(), '{}')", [id]);
  if (key !== null) await database.query("insert into graphile_worker._hathi_worker_lines values ($1, $2)", [id, key]);
  const job = await addJob(database, "other task");
  await database.query("update graphile_worker._private_jobs set locked_by = $1, locked_at = now() where id = $2", [
    id,
    job,
  ]);
  return job;
}

test("an outage of the server is not the death of the workers: its time counts for none of them", async () => {
  const database = await freshDatabase();
  await prepareOutages(database);
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    connectionString: database.url,
    recovery: settings,
    taskList: { task: () => undefined },
    noHandleSignals: true,
    logger,
  });
  onTestFinished(() => runner.stop());
  const sweeps = "select from graphile_worker._hathi_sweeps";
  await until(async () => (await database.query(sweeps)).length === 1, { what: "it sweeps", withinMs: 90_000 });

  await database.query("insert into outage default values");
  await until(() => lines.some(({ message }) => /heartbeat is overdue/.test(message)));
  const jobs = [await addWorker(database, "silent", null), await addWorker(database, "cut off", 4711)];
  // As after an outage of an hour.
  await database.pool.query(`
    set session_replication_role = replica;
    update graphile_worker._private_workers set last_heartbeat_at = now() - interval '1 hour';
    update graphile_worker._hathi_worker_lines set lost_at = now() - interval '1 hour';
    reset session_replication_role;`);
  await database.query("delete from outage");
  const [end] = await database.query<{ at: Date }>("select clock_timestamp() as at");

  const buried = "select id, left_at from graphile_worker._hathi_former_workers where is_dead order by id";
  const former = await until(
    async () => {
      const rows = await database.query<{ id: string; left_at: Date }>(buried);
      return rows.length === 2 && rows;
    },
    { what: "they are dead after all", withinMs: 90_000 },
  );
  expect(former.map(({ id }) => id)).toEqual(["cut off", "silent"]);
  for (const { left_at } of former) {
    expect(left_at.getTime() - end!.at.getTime()).toBeGreaterThanOrEqual(settings.sweepThreshold);
  }
  // At once, or as suspects that no worker can adopt.
  await until(async () => (await database.jobs()).every(({ locked_by }) => locked_by === null));
  expect((await database.jobs()).map(({ id }) => id)).toEqual(jobs);
}, 150_000);

test("whoever lost its line when the sweeper lost its own has as long to reconnect as after an outage", async () => {
  const database = await freshDatabase();
  const runner = await run({
    connectionString: database.url,
    recovery: { ...settings, sweepThreshold: 6_000 },
    taskList: { task: () => undefined },
    noHandleSignals: true,
    logger: rememberingLogger().logger,
  });
  onTestFinished(() => runner.stop());
  const sweeps = "select from graphile_worker._hathi_sweeps";
  await until(async () => (await database.query(sweeps)).length === 1, { what: "it sweeps", withinMs: 90_000 });

  const [cut] = await database.query<{ at: Date; count: number }>(`
    select clock_timestamp() as at, count(pg_terminate_backend(pid))::int as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`);
  expect(cut!.count).toBeGreaterThan(0);
  // The sweeper has another line at once; this one never has.
  const job = await addWorker(database, "cut off", 4711);

  const buried = "select left_at from graphile_worker._hathi_former_workers where is_dead";
  const [former] = await until(
    async () => {
      const rows = await database.query<{ left_at: Date }>(buried);
      return rows.length === 1 && rows;
    },
    { what: "it is dead after all", withinMs: 90_000 },
  );
  expect(former!.left_at.getTime() - cut!.at.getTime()).toBeGreaterThanOrEqual(6_000);
  await until(async () => (await database.job(job))?.locked_by === null);
}, 150_000);

test("a line that is lost counts as dead after the grace period, or later while the sweeper's own line is new", () => {
  const long = { sweepThreshold: 300_000, crashGrace: 5_000 };
  expect(graceMs(long, Number.POSITIVE_INFINITY)).toBe(5_000);
  expect(graceMs(long, 15_000)).toBe(5_000);
  expect(graceMs(long, 14_999)).toBe(15_000);
  expect(graceMs({ ...long, crashGrace: 60_000 }, 0)).toBe(60_000);
  expect(graceMs({ sweepThreshold: 4_000, crashGrace: 1_000 }, 0)).toBe(4_000);
  expect(graceMs({ sweepThreshold: 4_000, crashGrace: 5_000 }, 0)).toBe(5_000);
});

test("a worker knows since when its line was not lost, also with a clock that is set back", () => {
  const witness = new Witness({ heartbeatInterval: 1_000, sweepThreshold: 20_000, crashGrace: 4_000 });
  witness.note(100_000, 0);
  expect(witness.lineSince).toBe(Number.NEGATIVE_INFINITY);
  // Lost and replaced between two heartbeats, before anything failed: the time witnessed goes on.
  expect(witness.note(101_000, 0, true)).toBe(82_000);
  expect(witness.lineSince).toBe(101_000);
  witness.note(102_000, 0);
  expect(witness.lineSince).toBe(101_000);
  witness.note(90_000, 0);
  expect(witness.lineSince).toBe(90_000);
});

test("what a worker has witnessed ends with a gap between its heartbeats, an outage, and a clock that is set back", () => {
  const witness = new Witness({ heartbeatInterval: 1_000, sweepThreshold: 20_000, crashGrace: 4_000 });
  expect(witness.note(100_000, 0)).toBe(82_000); // two heartbeats are enough after a start
  expect(witness.note(101_000, 0)).toBe(82_000);
  expect(witness.note(106_000, 2_000)).toBe(82_000);
  expect(witness.note(107_000, 2_001)).toBe(107_000);
  expect(witness.note(117_000, 0)).toBe(107_000);
  expect(witness.note(127_001, 0)).toBe(127_001);
  expect(witness.note(128_000, 0)).toBe(127_001);
  expect(witness.note(127_999, 0)).toBe(127_999);
});
