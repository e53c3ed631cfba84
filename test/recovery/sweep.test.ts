import pg from "pg";
import { expect, test } from "vitest";
import { recoveryDefaults } from "../../src/config/defaults.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { migrate } from "../../src/db/migrate.ts";
import { type SweepOptions, type SweepResult, sweep } from "../../src/recovery/sweep.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { addJob } from "./worker-process.ts";

/** A worker that gave its last sign of life so many seconds ago. */
async function worker(db: TestDatabase, id: string, secondsAgo: number, metadata: object = { concurrency: 10 }) {
  await db.query(
    "insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values ($1, now() - $2 * interval '1 second', $3)",
    [id, secondsAgo, JSON.stringify(metadata)],
  );
}

/** Lets a worker hold a job, and its queue, for so many seconds already. */
async function hold(db: TestDatabase, id: string, owner: string, seconds = 1_000): Promise<string> {
  await db.query(
    `with job as (
      update graphile_worker._private_jobs
      set locked_by = $2, locked_at = now() - $3 * interval '1 second', attempts = attempts + 1 where id = $1
      returning job_queue_id, locked_at
    )
    update graphile_worker._private_job_queues as queue set locked_by = $2, locked_at = job.locked_at
    from job where queue.id = job.job_queue_id`,
    [id, owner, seconds],
  );
  return id;
}

async function held(
  db: TestDatabase,
  owner: string,
  ...job: Parameters<typeof addJob> extends [unknown, ...infer Rest] ? Rest : never
) {
  return hold(db, await addJob(db, ...job), owner);
}

function sweepIn(db: TestDatabase, { settings, ...options }: Partial<SweepOptions> = {}): Promise<SweepResult> {
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  return sweep(database, {
    sweeperId: "sweeper",
    settings: { ...recoveryDefaults, ...settings },
    withOrphans: true,
    dryRun: false,
    hooks: {},
    ...options,
  });
}

test("jobs and queues of silent workers are freed, their attempt is restored and they rest for the delay", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 301);
  await worker(db, "alive", 299);
  const theirs = await held(db, "dead", "task", {}, { queue: "q" });
  const ours = await held(db, "alive", "task", {}, { queue: "r" });
  expect(await sweepIn(db)).toMatchObject({
    isDone: true,
    workerIds: ["dead"],
    workers: [{ id: "dead", reason: "silent" }],
    jobs: [{ id: theirs, task: "task", workerId: "dead", outcome: "recovered" }],
    recoveredCount: 1,
  });
  const [job] = await db.query(
    `select attempts, last_error, locked_by, locked_at, run_at > now() + interval '25 s' and run_at < now() + interval '31 s' as rests
    from graphile_worker._private_jobs where id = $1`,
    [theirs],
  );
  expect(job).toEqual({
    attempts: 0,
    last_error: "Job recovered after worker interruption",
    locked_by: null,
    locked_at: null,
    rests: true,
  });
  expect(await db.job(ours)).toMatchObject({ locked_by: "alive", attempts: 1 });
  expect(await db.query("select queue_name, locked_by from graphile_worker._private_job_queues order by 1")).toEqual([
    { queue_name: "q", locked_by: null },
    { queue_name: "r", locked_by: "alive" },
  ]);
  expect(await db.query("select id from graphile_worker._private_workers")).toEqual([{ id: "alive" }]);
});

test("a job that is due later than the delay stays where it is", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  const id = await addJob(db, "task");
  await db.query("update graphile_worker._private_jobs set run_at = '2100-01-01Z' where id = $1", [id]);
  await hold(db, id, "dead");
  await sweepIn(db);
  expect((await db.job(id))?.run_at).toEqual(new Date("2100-01-01Z"));
});

test.each([
  ["true", true],
  ["1", true],
  ['"yes"', true],
  ["false", false],
  ["null", false],
  ["0", false],
  ['""', false],
])("a resilient flag with the value %s gives its worker three times the threshold: %s", async (value, isResilient) => {
  const db = await freshDatabase();
  await worker(db, "quiet", 400);
  const id = await held(db, "quiet", "task");
  await db.query(
    "update graphile_worker._private_jobs set flags = jsonb_build_object('infrastructure_resilient', $2::jsonb) where id = $1",
    [id, value],
  );
  expect((await sweepIn(db)).workerIds).toEqual(isResilient ? [] : ["quiet"]);
  await db.query("update graphile_worker._private_workers set last_heartbeat_at = now() - interval '901 s'");
  expect((await sweepIn(db)).workerIds).toEqual(isResilient ? ["quiet"] : []);
});

test("other flags can be named resilient, and other factors", async () => {
  const db = await freshDatabase();
  await worker(db, "quiet", 400);
  await held(db, "quiet", "task", {}, { flags: ["tough"] });
  const settings = { ...recoveryDefaults, resilientJobFlags: ["tough"], resilientSweepThresholdMultiplier: 1.5 };
  expect((await sweepIn(db, { settings, dryRun: true })).workerIds).toEqual([]);
  expect((await sweepIn(db, { dryRun: true })).workerIds).toEqual(["quiet"]);
  await db.query("update graphile_worker._private_workers set last_heartbeat_at = now() - interval '451 s'");
  expect((await sweepIn(db, { settings })).workerIds).toEqual(["quiet"]);
});

test("only owners that are known to have registered can be orphans before four hours have passed", async () => {
  const db = await freshDatabase();
  await worker(db, "left", 1);
  await db.query("select graphile_worker.worker_deregister('left')");
  const [orphan, stranger, ancient] = [
    await held(db, "left", "task", {}, { queue: "q" }),
    await held(db, "pool-of-an-original", "task", {}, { queue: "r" }),
    await hold(db, await addJob(db, "task"), "pool-long-gone", 4 * 3600 + 1),
  ];
  await hold(db, stranger, "pool-of-an-original", 4 * 3600 - 60);
  const fresh = await hold(db, await addJob(db, "task"), "left", 200);
  const result = await sweepIn(db);
  expect(result.workerIds.toSorted()).toEqual(["left", "pool-long-gone"]);
  expect(await db.job(stranger)).toMatchObject({ locked_by: "pool-of-an-original", attempts: 2 });
  for (const id of [orphan, ancient, fresh]) expect(await db.job(id)).toMatchObject({ locked_by: null, attempts: 0 });
});

test("a job lock that is young does not make its owner an orphan", async () => {
  const db = await freshDatabase();
  await worker(db, "left", 1);
  await db.query("select graphile_worker.worker_deregister('left')");
  const id = await hold(db, await addJob(db, "task"), "left", 10);
  expect((await sweepIn(db)).workerIds).toEqual([]);
  expect(await db.job(id)).toMatchObject({ locked_by: "left" });
});

test("a queue that its dead owner holds without a job is freed", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  await addJob(db, "task", {}, { queue: "q" });
  await db.query("update graphile_worker._private_job_queues set locked_by = 'dead', locked_at = now()");
  expect(await sweepIn(db)).toMatchObject({ workerIds: ["dead"], jobs: [] });
  expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
});

test("a job that was replaced, removed or failed by hand while it ran is not revived", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  const add = async (key: string): Promise<string> =>
    (await db.query<{ id: string }>("select id from graphile_worker.add_job('task', job_key => $1)", [key]))[0]!.id;
  const [replaced, removed] = [await hold(db, await add("a"), "dead"), await hold(db, await add("b"), "dead")];
  const failed = await hold(db, await add("c"), "dead", 4 * 3600 + 1);
  await db.query("select graphile_worker.permanently_fail_jobs(array[$1::bigint])", [failed]);
  await add("a");
  await db.query("select graphile_worker.remove_job('b')");
  await sweepIn(db);
  for (const id of [replaced, removed, failed]) {
    expect(await db.job(id)).toMatchObject({ locked_by: null, is_available: false, attempts: 25 });
  }
});

test("a dry run names workers and jobs, and changes nothing", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  const id = await held(db, "dead", "task", {}, { queue: "q" });
  const before = [await db.jobs(), await db.query("select * from graphile_worker._private_workers")];
  expect(await sweepIn(db, { dryRun: true })).toMatchObject({
    workerIds: ["dead"],
    jobs: [{ id, task: "task", workerId: "dead", outcome: "recovered" }],
    recoveredCount: 1,
  });
  expect([await db.jobs(), await db.query("select * from graphile_worker._private_workers")]).toEqual(before);
});

test("of many sweeps at once each job is recovered by one", async () => {
  const db = await freshDatabase();
  for (let dead = 0; dead < 5; dead++) {
    await worker(db, `dead-${dead}`, 1_000);
    for (let n = 0; n < 20; n++) await held(db, `dead-${dead}`, "task");
  }
  const results = await Promise.all(Array.from({ length: 8 }, () => sweepIn(db)));
  expect(results.flatMap(({ jobs }) => jobs.map(({ id }) => Number(id))).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 100 }, (_, index) => index + 1),
  );
  expect((await db.jobs()).every(({ attempts, locked_by }) => attempts === 0 && locked_by === null)).toBe(true);
});

test("sweeps of two schemas of one database do not stand in each other's way", async () => {
  const db = await freshDatabase();
  const client = await db.pool.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(hashtextextended('hathi sweep other_schema', 0))");
    expect((await sweepIn(db)).isDone).toBe(true);
    await client.query("select pg_advisory_xact_lock(hashtextextended('hathi sweep graphile_worker', 0))");
    expect(await sweepIn(db)).toMatchObject({ isDone: false, workerIds: [] });
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("a worker that gives a sign of life during the sweep is spared", async () => {
  const db = await freshDatabase();
  await worker(db, "late", 1_000);
  const client = await db.pool.connect();
  try {
    await client.query("begin");
    await client.query("update graphile_worker._private_workers set last_heartbeat_at = now()");
    expect((await sweepIn(db)).workerIds).toEqual([]);
    await client.query("commit");
  } finally {
    client.release();
  }
  expect((await sweepIn(db)).workerIds).toEqual([]);
});

test("only jobs that can have been running are suspects: not what waited in a buffer or behind its queue", async () => {
  const db = await freshDatabase();
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.push(await addJob(db, "task", {}, { queue: n < 3 ? "q" : null }));
  for (let death = 1; death <= 3; death++) {
    await worker(db, `dead-${death}`, 1_000, { concurrency: 2 });
    for (const id of ids) await hold(db, id, `dead-${death}`);
    await sweepIn(db);
  }
  const failed = (await db.jobs()).filter(({ attempts }) => attempts === 25).map(({ id }) => id);
  expect(failed).toEqual([ids[0], ids[3]]);
});

test("deaths that are not in a row make no suspect, and a suspect that is rescheduled starts from nought", async () => {
  const db = await freshDatabase();
  const id = await addJob(db, "task");
  const die = async (): Promise<SweepResult> => {
    await worker(db, "dead", 1_000);
    await hold(db, id, "dead");
    return sweepIn(db);
  };
  await die();
  await die();
  await db.query("update graphile_worker._private_jobs set attempts = 1"); // failed in between
  await die();
  await die();
  expect(await db.job(id)).toMatchObject({ attempts: 1 });
  expect(await die()).toMatchObject({ jobs: [{ id, outcome: "suspect" }] });
  expect(await db.job(id)).toMatchObject({ attempts: 25 });
  await db.query("select graphile_worker.reschedule_jobs(array[$1::bigint], attempts => 1, run_at => now())", [id]);
  expect(await die()).toMatchObject({ jobs: [{ id, outcome: "recovered" }] });
});

test("hooks decide what becomes of each job, and are told when it is true", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  const runAt = new Date("2100-01-01Z");
  const [plain, moved, failed, skipped] = [
    await held(db, "dead", "plain"),
    await held(db, "dead", "moved", {}, { queue: "a" }),
    await held(db, "dead", "failed", {}, { queue: "b" }),
    await held(db, "dead", "skipped", {}, { queue: "c" }),
  ] as const;
  const told: unknown[] = [];
  const result = await sweepIn(db, {
    hooks: {
      jobRecovery: async ({ job, previousWorkerId, workerId, reason }) => {
        expect([previousWorkerId, workerId, reason]).toEqual(["dead", "sweeper", "workerCrashed"]);
        if (job.id === moved) return { runAt, attempts: 7 };
        if (job.id === failed) return "failWithBackoff";
        return job.id === skipped ? "skip" : "default";
      },
      jobInterrupted: ({ job, reason }) => told.push([job.id, reason]),
      workerRecovered: ({ workerId, deadWorkerIds, jobsRecovered }) =>
        told.push([workerId, deadWorkerIds, jobsRecovered]),
    },
  });
  expect(result).toMatchObject({ recoveredCount: 3, workerIds: ["dead"] });
  expect(Object.fromEntries(result.jobs.map(({ id, outcome }) => [id, outcome]))).toEqual({
    [plain]: "recovered",
    [moved]: "rescheduled",
    [failed]: "failed",
    [skipped]: "skipped",
  });
  expect(await db.job(plain)).toMatchObject({ attempts: 0, locked_by: null });
  expect(await db.job(moved)).toMatchObject({ attempts: 7, run_at: runAt, locked_by: null });
  expect(await db.job(failed)).toMatchObject({
    attempts: 1,
    locked_by: null,
    last_error: "The worker died while this job was running",
  });
  expect(await db.job(skipped)).toMatchObject({ attempts: 1, locked_by: "dead" });
  expect(
    await db.query("select queue_name from graphile_worker._private_job_queues where locked_at is not null"),
  ).toEqual([{ queue_name: "c" }]);
  expect(told).toEqual([
    [plain, "workerCrashed"],
    [moved, "workerCrashed"],
    [failed, "workerCrashed"],
    ["sweeper", ["dead"], 3],
  ]);
  // What was skipped is asked about again.
  expect(await sweepIn(db)).toMatchObject({ workers: [{ id: "dead", reason: "orphan" }], jobs: [{ id: skipped }] });
});

test("the functions of the Rust port work on the same tables, and steal from nobody", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.worker_heartbeat('rust', '{\"pid\": 1}')");
  await db.query("select graphile_worker.worker_heartbeat('rust')");
  expect(await db.query("select id, metadata from graphile_worker._private_workers")).toEqual([
    { id: "rust", metadata: { pid: 1 } },
  ]);
  expect(await db.query("select worker_id from graphile_worker.list_stale_workers('1 hour')")).toEqual([]);
  await db.query("update graphile_worker._private_workers set last_heartbeat_at = now() - interval '2 hours'");
  expect(await db.query("select worker_id from graphile_worker.list_stale_workers('1 hour')")).toEqual([
    { worker_id: "rust" },
  ]);
  const id = await held(db, "rust", "task");
  await held(db, "somebody", "task");
  expect(await db.query("select worker_id from graphile_worker.list_orphan_locked_workers('1 s')")).toEqual([]);
  expect(await db.query("select graphile_worker.recover_dead_worker_jobs(array['rust'], '1 s') as count")).toEqual([
    { count: 1 },
  ]);
  expect(await db.job(id)).toMatchObject({ attempts: 0, locked_by: null });
  await db.query("select graphile_worker.delete_stale_workers(array['rust'])");
  await hold(db, id, "rust");
  expect(await db.query("select worker_id from graphile_worker.list_orphan_locked_workers('1 s')")).toEqual([
    { worker_id: "rust" },
  ]);
});

test("everything works in a schema whose name looks like parameters", async () => {
  const schema = 'odd "name" $&';
  const db = await freshDatabase({ migrated: false, schema });
  const client = await db.pool.connect();
  try {
    await migrate({ client, schema });
  } finally {
    client.release();
  }
  await worker(db, "dead", 1_000);
  const id = await held(db, "dead", "task", {}, { queue: "q" });
  expect(await sweepIn(db)).toMatchObject({ workerIds: ["dead"], jobs: [{ id, task: "task" }] });
  expect(await db.job(id)).toMatchObject({ locked_by: null, attempts: 0 });
  expect(await db.query("select id from graphile_worker._hathi_former_workers")).toEqual([{ id: "dead" }]);
});

test("a sweeper that is frozen in the middle of its sweep does not keep others from sweeping for long", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 10_000);
  const id = await held(db, "dead", "t");
  // Never ended: like a frozen process, it does not let go of its connection. The server does.
  const pool = new pg.Pool({ connectionString: db.url, max: 1 });
  const frozen = deferred();
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    client.query = (async (config: { text?: string }) => {
      const result = await query(config);
      if (!config.text?.includes("pg_try_advisory_xact_lock")) return result;
      frozen.resolve();
      return new Promise(() => undefined);
    }) as unknown as typeof client.query;
  });
  void sweepIn({ ...db, pool });
  await frozen.promise;
  expect((await sweepIn(db)).isDone).toBe(false);
  await until(async () => (await sweepIn(db)).isDone);
  expect(await db.job(id)).toMatchObject({ locked_by: null });
}, 40_000);
