import { expect, onTestFinished, test } from "vitest";
import { type JobInspector, makeJobInspector } from "../../src/admin/job-inspector.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";

async function inspected(): Promise<{ db: TestDatabase; look: JobInspector }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  return { db, look: makeJobInspector(database) };
}

async function add(db: TestDatabase, task: string, more: Record<string, unknown> = {}): Promise<string> {
  const names = Object.keys(more);
  const args = names.map((name, index) => `, ${name} => $${index + 2}`).join("");
  const values = names.map((name) => more[name]);
  const [row] = await db.query<{ id: string }>(`select (graphile_worker.add_job($1${args})).id`, [task, ...values]);
  return row!.id;
}

const lock = (db: TestDatabase, id: string, by: string): Promise<unknown> =>
  db.query(
    "update graphile_worker._private_jobs set locked_by = $2, locked_at = now(), attempts = attempts + 1 where id = $1",
    [id, by],
  );

const kinds = async (look: JobInspector, id: string): Promise<string[]> =>
  (await look.explainJob(id)).reasons.map(({ kind }) => kind);

/** A connection that waits for news of jobs, as a worker's does. */
async function listen(db: TestDatabase): Promise<void> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  await client.query('LISTEN "jobs:insert"');
}

test("a page of jobs ends where the next begins, newest first", async () => {
  const { db, look } = await inspected();
  await db.query("select graphile_worker.add_job('task_' || i % 2) from generate_series(1, 25) as i");
  const first = await look.listJobs({}, { limit: 10 });
  const second = await look.listJobs({}, { limit: 10, after: first.next });
  const third = await look.listJobs({}, { limit: 10, after: second.next });
  expect([first.jobs.length, second.jobs.length, third.jobs.length]).toEqual([10, 10, 5]);
  expect(third.next).toBeNull();
  const ids = [...first.jobs, ...second.jobs, ...third.jobs].map((job) => Number(job.id));
  expect(ids).toEqual(Array.from({ length: 25 }, (_, index) => 25 - index));
});

test("jobs are found by state, task, queue, key, time and words", async () => {
  const { db, look } = await inspected();
  const waiting = await add(db, "email", { payload: '{"to":"Ada@example.com"}' });
  const scheduled = await add(db, "email", { run_at: "2100-01-01" });
  const running = await add(db, "report", { queue_name: "slow" });
  const dead = await add(db, "report", { job_key: "the key" });
  await lock(db, running, "pool-1");
  await db.query("update graphile_worker._private_jobs set attempts = 25, last_error = 'Kaboom' where id = $1", [dead]);
  const ids = async (filter: Parameters<JobInspector["listJobs"]>[0]): Promise<string[]> =>
    (await look.listJobs(filter)).jobs.map((job) => job.id);

  expect(await ids({ state: "waiting" })).toEqual([waiting]);
  expect(await ids({ state: "scheduled" })).toEqual([scheduled]);
  expect(await ids({ state: "running" })).toEqual([running]);
  expect(await ids({ state: "dead" })).toEqual([dead]);
  expect(await ids({ task: "email" })).toEqual([scheduled, waiting]);
  expect(await ids({ queue: "slow" })).toEqual([running]);
  expect(await ids({ key: "the key" })).toEqual([dead]);
  expect(await ids({ search: "kaboom" })).toEqual([dead]);
  expect(await ids({ search: "ada@EXAMPLE" })).toEqual([waiting]);
  expect(await ids({ since: new Date(Date.now() + 60_000) })).toEqual([]);
  expect(await ids({ task: "nobody knows it" })).toEqual([]);
  await expect(look.listJobs({ state: "waitin" as "waiting" })).rejects.toThrow("Did you mean 'waiting'?");
});

test("counts are exact while the table is small", async () => {
  const { db, look } = await inspected();
  await add(db, "a");
  const oldest = await add(db, "a", { run_at: "2020-01-01", priority: 5 });
  await add(db, "b", { run_at: "2100-01-01", queue_name: "q" });
  const stats = await look.getJobStats();
  expect(stats.isExact).toBe(true);
  expect(stats.counts).toEqual({ waiting: 2, scheduled: 1, running: 0, dead: 0, total: 3 });
  expect(stats.tasks).toMatchObject([
    { task: "a", waiting: 2, total: 2 },
    { task: "b", scheduled: 1, total: 1 },
  ]);
  expect(stats.queues).toMatchObject([{ queue: "q", total: 1 }]);
  expect(stats.oldestWaiting).toMatchObject({ id: oldest, task_identifier: "a" });
});

test("a job that may run says so, or that nobody is there to run it", async () => {
  const { db, look } = await inspected();
  const id = await add(db, "a");
  expect(await kinds(look, id)).toEqual(["no-worker"]);
  await listen(db);
  expect(await kinds(look, id)).toEqual(["unblocked"]);
});

test("the most decisive reason comes first", async () => {
  const { db, look } = await inspected();
  await listen(db);
  const first = await add(db, "a", { queue_name: "q" });
  const second = await add(db, "a", { queue_name: "q", flags: ["slow"] });
  const later = await add(db, "a", { run_at: "2100-01-01" });
  const third = await add(db, "b");
  await lock(db, first, "pool-1");
  await db.query("update graphile_worker._private_job_queues set locked_by = 'pool-1', locked_at = now()");

  expect(await kinds(look, first)).toEqual(["locked"]);
  expect(await kinds(look, second)).toEqual(["queue-held", "flags"]);
  expect((await look.explainJob(second)).reasons[0]).toMatchObject({ queue: "q", by: "pool-1", job: { id: first } });
  expect(await kinds(look, later)).toEqual(["scheduled"]);
  expect(await kinds(look, third)).toEqual(["jobs-ahead"]);
  expect((await look.explainJob(third)).reasons[0]!.message).toContain("1 due job comes before it");

  await db.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'no luck' where id = $1",
    [third],
  );
  expect((await look.explainJob(third)).reasons[0]!.message).toContain(
    "Last error: no luck. To try it again: hathi retry",
  );
  await db.query("update graphile_worker._private_jobs set last_error = 'Sorry, try later.' where id = $1", [third]);
  expect((await look.explainJob(third)).reasons[0]!.message).toContain("Last error: Sorry, try later. To try it again");
});

test("an id that is gone and one that never was are told apart", async () => {
  const { db, look } = await inspected();
  const id = await add(db, "a");
  await db.query("select graphile_worker.complete_jobs(array[$1::bigint])", [id]);
  expect((await look.explainJob(id)).reasons).toMatchObject([{ kind: "gone", neverExisted: false }]);
  expect((await look.explainJob("999999")).reasons).toMatchObject([{ kind: "gone", neverExisted: true }]);
  await expect(look.explainJob("seven")).rejects.toThrow("A job id must be a whole number such as '42', got 'seven'");
});

test("heartbeats tell whether the owner of a lock is alive, and which tasks live workers have", async () => {
  const { db, look } = await inspected();
  await db.query(`create table if not exists graphile_worker._private_workers (
    id text primary key, last_heartbeat_at timestamptz not null, started_at timestamptz not null default now(), metadata jsonb)`);
  await db.query(`insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values
    ('pool-live', now(), '{"tasks":["known"],"pid":7,"hostname":"here"}'), ('pool-dead', now() - interval '1 hour', null)`);
  const [live, dead, stranger, unknownTask] = [
    await add(db, "known"),
    await add(db, "known"),
    await add(db, "known"),
    await add(db, "new"),
  ];
  await lock(db, live, "pool-live");
  await lock(db, dead, "pool-dead");
  await lock(db, stranger, "pool-other");
  const lifeOf = async (id: string): Promise<unknown> => (await look.explainJob(id)).reasons[0];
  expect(await lifeOf(live)).toMatchObject({ kind: "locked", owner: { life: "alive", where: "process 7 on here" } });
  expect(await lifeOf(dead)).toMatchObject({ kind: "locked", owner: { life: "silent" } });
  expect(await lifeOf(stranger)).toMatchObject({ kind: "locked", owner: { life: "unknown" } });
  expect(await lifeOf(unknownTask)).toMatchObject({
    kind: "no-worker-for-task",
    task: "new",
    liveWorkers: 1,
    message: expect.stringMatching(/^The only live worker does not have a task 'new'\. Start/),
  });
  expect(await look.listWorkers()).toMatchObject([
    { id: "pool-live", life: "alive", jobs: 1 },
    { id: "pool-dead", life: "silent", jobs: 1 },
    { id: "pool-other", life: "unknown", jobs: 1 },
  ]);
});

test("queues show who holds them and how much waits", async () => {
  const { db, look } = await inspected();
  await db.query("select graphile_worker.add_job('a', queue_name => 'full') from generate_series(1, 3)");
  await add(db, "a", { queue_name: "later", run_at: "2100-01-01" });
  await db.query(
    "update graphile_worker._private_job_queues set locked_by = 'pool-1', locked_at = now() where queue_name = 'full'",
  );
  expect(await look.listQueues()).toMatchObject([
    { queue_name: "full", waiting: 3, scheduled: 0, locked_by: "pool-1" },
    { queue_name: "later", waiting: 0, scheduled: 1, locked_by: null },
  ]);
});

test("a healthy database passes every check, and a missing index is named", async () => {
  const { db, look } = await inspected();
  const healthy = await look.examineHealth();
  expect(healthy.filter(({ status }) => status === "problem")).toEqual([]);
  expect(healthy.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["schema", "notifications", "prepared statements"]),
  );
  await db.query("drop index graphile_worker._hathi_jobs_by_queue");
  const sick = await look.examineHealth();
  expect(sick.find(({ name }) => name === "indexes")).toMatchObject({
    status: "problem",
    message: expect.stringContaining("_hathi_jobs_by_queue"),
  });
});
