import pg from "pg";
import { expect, test } from "vitest";
import { recoveryDefaults } from "../../src/config/recovery-options.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { migrate } from "../../src/db/migrate.ts";
import type { KeepRules } from "../../src/kept-history.ts";
import { type SweepResult, sweep } from "../../src/recovery/sweep.ts";
import type { SweepOptions } from "../../src/recovery/sweep-options.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { addJob } from "./kit.ts";

/** A worker that sent its last heartbeat so many seconds ago. */
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
    witnessedMs: () => null,
    dryRun: false,
    hooks: {},
    keepRules: { of: () => undefined, redact: [], opening: () => undefined },
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

test("a worker that sends a heartbeat during the sweep is spared", async () => {
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

test("only jobs that can have been running are suspects; what waited in a buffer or behind its queue is free at once", async () => {
  const db = await freshDatabase();
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.push(await addJob(db, "task", {}, { queue: n < 3 ? "q" : null }));
  const before = await db.jobs();
  await worker(db, "dead", 1_000, { concurrency: 2 });
  for (const id of ids) await hold(db, id, "dead");
  await sweepIn(db);
  expect(await db.query("select job_id, crashes from graphile_worker._hathi_job_crashes order by 1")).toEqual([
    { job_id: ids[0], crashes: 0 },
    { job_id: ids[3], crashes: 0 },
  ]);
  const after = await db.jobs();
  for (const index of [1, 2, 4, 5]) {
    const { updated_at: _before, ...old } = before[index]!;
    const { updated_at: _after, ...now } = after[index]!;
    expect(now).toEqual(old);
  }
});

async function crashesOf(db: TestDatabase, id: string): Promise<number | undefined> {
  const [row] = await db.query<{ crashes: number }>(
    "select crashes from graphile_worker._hathi_job_crashes where job_id = $1",
    [id],
  );
  return row?.crashes;
}

test("only the sole suspect of a death has a crash counted, and only soon after it started", async () => {
  const db = await freshDatabase();
  const [poison, innocent, fresh] = [await addJob(db, "a"), await addJob(db, "b"), await addJob(db, "c")] as const;
  let deaths = 0;
  const die = async (ids: readonly string[], ranForSeconds = 1): Promise<void> => {
    const id = `dead-${++deaths}`;
    await worker(db, id, 1_000, { concurrency: 5 });
    for (const job of ids) await hold(db, job, id, 1_000 + ranForSeconds);
    await sweepIn(db);
  };
  await die([poison, innocent]);
  expect([await crashesOf(db, poison), await crashesOf(db, innocent)]).toEqual([0, 0]);
  await die([poison, fresh]); // one that was there before, and one that was not
  expect([await crashesOf(db, poison), await crashesOf(db, fresh)]).toEqual([1, 0]);
  await die([poison], 600); // long after its start: more likely the machine's fault
  expect(await crashesOf(db, poison)).toBe(0);
  await die([innocent]);
  expect(await crashesOf(db, innocent)).toBe(1);
});

test.each([
  ["was asked to stop before it died", { stopping: true }],
  ["only forwards jobs", { forwards: true }],
])("a worker that %s makes no suspects", async (_, description) => {
  const db = await freshDatabase();
  const id = await addJob(db, "task");
  for (let death = 1; death <= 4; death++) {
    await worker(db, "dead", 1_000, { concurrency: 1, ...description });
    await hold(db, id, "dead");
    await sweepIn(db);
    await db.query("update graphile_worker._private_jobs set run_at = now()");
  }
  expect(await db.job(id)).toMatchObject({ attempts: 0, locked_by: null });
  expect((await crashesOf(db, id)) ?? 0).toBe(0);
});

test.each(["silent", "lost"])("jobs of a forwarder that is %s are free at once and in their place", async (way) => {
  const db = await freshDatabase();
  // It could adopt suspects, if there were any.
  await worker(db, "heir", 0, { concurrency: 10, migration: 6 });
  await worker(db, "dead", way === "silent" ? 1_000 : 5, { concurrency: 500, forwards: true });
  if (way === "lost") {
    await db.query(
      `insert into graphile_worker._hathi_worker_lines (id, key, lost_at)
       values ('dead', 4711, now() - interval '1 minute')`,
    );
  }
  for (let n = 0; n < 20; n++) await held(db, "dead", "mail", {}, n % 4 === 0 ? { queue: "q" } : {});
  const dueAt = async () => (await db.jobs()).map(({ id, run_at }) => [id, run_at]);
  const before = await dueAt();
  const { jobs } = await sweepIn(db);
  expect(new Set(jobs.map(({ outcome }) => outcome))).toEqual(new Set(["recovered"]));
  expect(jobs).toHaveLength(20);
  expect(await dueAt()).toEqual(before);
  expect((await db.jobs()).every(({ locked_by, attempts }) => locked_by === null && attempts === 0)).toBe(true);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("where workers die without the suspect, too, it takes more to fail it", async () => {
  const db = await freshDatabase();
  const id = await addJob(db, "task");
  const outcomes: unknown[] = [];
  for (let death = 1; death <= 9; death++) {
    await worker(db, `bystander-${death}`, 1_000, { concurrency: 1 });
    await worker(db, `dead-${death}`, 1_000, { concurrency: 1 });
    await hold(db, id, `dead-${death}`);
    outcomes.push((await sweepIn(db)).jobs[0]?.outcome);
  }
  expect(outcomes).toEqual([...Array(8).fill("recovered"), "suspect"]);
});

/** A worker that would adopt what is parked. */
function heir(db: TestDatabase, id = "heir"): Promise<void> {
  return worker(db, id, 0, { concurrency: 1, migration: 6, tasks: ["task"] });
}

/** Makes a worker's death proven: it held a lock that is gone. */
async function loseLine(db: TestDatabase, id: string): Promise<void> {
  await db.query(
    "insert into graphile_worker._hathi_worker_lines (id, key, lost_at) values ($1, 4711, now() - interval '10 seconds')",
    [id],
  );
}

async function adopt(db: TestDatabase, pool = "heir"): Promise<{ id: string; attempts: number } | undefined> {
  const tasks = "(select array_agg(id) from graphile_worker._private_tasks)";
  const [row] = await db.query<{ id: string; attempts: number }>(
    `select id, attempts from graphile_worker._hathi_adopt_suspect('${pool}', ${tasks}, null, null, null)`,
  );
  return row;
}

test("a suspect is parked with its queue and keeps its place until a worker adopts it, at once if the death is proven", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "dead", 1);
  await loseLine(db, "dead");
  const ids = [
    await held(db, "dead", "task", {}, { queue: "q" }),
    await addJob(db, "task", {}, { queue: "q" }),
  ] as const;
  const before = (await db.job(ids[0]))!;
  await sweepIn(db);
  expect(await db.job(ids[0])).toMatchObject({
    locked_by: "hathi-recovery",
    run_at: before.run_at,
    attempts: 0,
    last_error: "Job recovered after worker interruption",
  });
  const queueOwner = async (): Promise<unknown> =>
    (await db.query("select locked_by from graphile_worker._private_job_queues"))[0];
  expect(await queueOwner()).toEqual({ locked_by: "hathi-recovery" });
  expect(await adopt(db, "buried")).toBeUndefined();
  expect(await adopt(db)).toEqual({ id: ids[0], attempts: 1 });
  expect(await queueOwner()).toEqual({ locked_by: "heir" });
});

test.each([
  ["a death that is only presumed", async () => undefined],
  ["a job that was running in an earlier death", loseLine],
])("the delay holds for %s, without loss of the place in line", async (what, prove) => {
  const db = await freshDatabase();
  await heir(db);
  const id = await addJob(db, "task");
  if (what.startsWith("a job")) {
    await worker(db, "first", 1_000);
    await hold(db, id, "first");
    await sweepIn(db, { settings: { ...recoveryDefaults, recoveryDelay: 0 } });
    await adopt(db);
  }
  await worker(db, "dead", 1_000);
  await prove(db, "dead");
  await db.query("update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1");
  const before = (await db.job(id))!;
  await sweepIn(db);
  expect(await db.job(id)).toMatchObject({ locked_by: "hathi-recovery", run_at: before.run_at });
  expect(await adopt(db)).toBeUndefined();
  const [row] = await db.query<{ ms: number }>("select graphile_worker._hathi_tend_parked() as ms");
  expect(row!.ms).toBeGreaterThan(20_000);
  await db.query("update graphile_worker._hathi_job_crashes set release_at = now()");
  expect(await adopt(db)).toMatchObject({ id });
});

test("parked jobs of queues that are paused keep no other one from being adopted", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "dead", 1, { concurrency: 20 });
  await loseLine(db, "dead");
  for (let n = 0; n < 11; n++) await held(db, "dead", "task", {}, { queue: `queue ${n}` });
  const last = await held(db, "dead", "task");
  await sweepIn(db);
  await db.query("select graphile_worker.pause_work('queue', queue_name) from graphile_worker._private_job_queues");
  expect(await adopt(db)).toMatchObject({ id: last });
  expect(await adopt(db)).toBeUndefined();
  await db.query("select graphile_worker.resume_work('queue', 'queue 3')");
  expect(await adopt(db)).toMatchObject({ attempts: 1 });
});

test("a suspect that is cancelled or replaced while it is parked leaves its queue, whatever is swept meanwhile", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "dead", 1);
  await loseLine(db, "dead");
  const cancelled = await held(db, "dead", "task", {}, { queue: "a" });
  const replace = "select id from graphile_worker.add_job('task', job_key => 'k', queue_name => 'b')";
  const [replaced] = await db.query<{ id: string }>(replace);
  await hold(db, replaced!.id, "dead");
  await sweepIn(db);
  await db.query("select from graphile_worker.cancel_jobs(array[$1::bigint])", [cancelled]);
  const [replacing] = await db.query<{ id: string }>(replace);
  await worker(db, "another", 1_000);
  await held(db, "another", "task");
  await sweepIn(db);
  await db.query("select graphile_worker._hathi_tend_parked()");
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  expect(await db.job(cancelled)).toBeUndefined();
  expect(await db.job(replaced!.id)).toMatchObject({ locked_by: null, is_available: false });
  expect(await db.job(replacing!.id)).toMatchObject({ is_available: true });
});

test("what no worker can adopt is freed for everybody, in its place", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "dead", 1);
  await loseLine(db, "dead");
  const id = await held(db, "dead", "unknown", {}, { queue: "q" });
  const { run_at } = (await db.job(id))!;
  await sweepIn(db);
  expect(await db.job(id)).toMatchObject({ locked_by: "hathi-recovery" });
  await db.query("select graphile_worker._hathi_tend_parked()");
  expect(await db.job(id)).toMatchObject({ locked_by: null, run_at, is_available: true });
  expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
});

/** Failures with payloads, for as many days as this says of their task. */
const keepingFor = (days: (task: string) => number | undefined): KeepRules => ({
  redact: ["secret"],
  opening: () => undefined,
  of(task) {
    const failedDays = days(task);
    if (failedDays === undefined) return undefined;
    return { keptAs: "full", keepsResult: true, completedDays: 1, resultDays: 1, failedDays };
  },
});

const keptOfCrashes = `
  select job_id, task_identifier, attempt, outcome, worker_id, payload, run_ms >= 0 and wait_ms >= 0 as has_times, expires_on - (settled_at at time zone 'utc')::date - 1 as days,
    (select sum(failures)::int from graphile_worker._hathi_error_groups as known where known.fingerprint = kept.fingerprint) as failures
  from graphile_worker._hathi_history_attempts as kept order by job_id`;

test("with recoveryBackoff a job that was running counts as failed, and one that was not is free at once", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000, { concurrency: 1 });
  const ran = await held(db, "dead", "task", { secret: 1, open: 2 });
  const waited = await held(db, "dead", "task");
  const keepRules = keepingFor(() => 3);
  const result = await sweepIn(db, { settings: { ...recoveryDefaults, recoveryBackoff: true }, keepRules });
  expect(result.jobs).toMatchObject([
    { id: ran, outcome: "failed" },
    { id: waited, outcome: "recovered" },
  ]);
  expect(await db.job(ran)).toMatchObject({
    attempts: 1,
    locked_by: null,
    last_error: expect.stringMatching(/^WorkerCrashed/),
    is_available: true,
  });
  expect((await db.job(ran))!.run_at.getTime()).toBeGreaterThan(Date.now());
  expect(await db.job(waited)).toMatchObject({ attempts: 0, last_error: null });
  expect(await db.query(keptOfCrashes)).toEqual([
    {
      job_id: ran,
      task_identifier: "task",
      attempt: 1,
      outcome: "failed",
      worker_id: "dead",
      payload: { secret: "[redacted]", open: 2 },
      has_times: true,
      days: 3,
      failures: 1,
    },
  ]);
});

test.each<[string, Partial<SweepOptions>]>([
  ["by default", {}],
  ["with recoveryBackoff", { settings: { ...recoveryDefaults, recoveryBackoff: true } }],
  ["whatever a hook decides", { hooks: { jobRecovery: async () => "failWithBackoff" } }],
])("a job that was cancelled before its worker died is gone, and its attempt has its entry: %s", async (_, options) => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000, { concurrency: 2 });
  const again = await held(db, "dead", "task", { secret: 1 });
  await db.query("update graphile_worker._private_jobs set attempts = 3");
  const unkept = await held(db, "dead", "unkept");
  const unstarted = await held(db, "dead", "task");
  await db.query("select from graphile_worker.cancel_jobs(array[$1, $2, $3]::bigint[], 'not needed')", [
    again,
    unkept,
    unstarted,
  ]);
  const keepRules = keepingFor((task) => (task === "task" ? 3 : undefined));
  const { jobs, hasLeftovers } = await sweepIn(db, { keepRules, ...options });
  expect(jobs.map(({ id, outcome }) => [id, outcome])).toEqual([
    [again, "cancelled"],
    [unkept, "cancelled"],
    [unstarted, "recovered"],
  ]);
  expect(hasLeftovers).toBe(false);
  expect(await db.jobs()).toEqual([]);
  expect(await db.query(keptOfCrashes)).toEqual([
    {
      job_id: again,
      task_identifier: "task",
      attempt: 3,
      outcome: "cancelled",
      worker_id: "dead",
      payload: { secret: "[redacted]" },
      has_times: true,
      days: 3,
      failures: null,
    },
  ]);
  expect(
    await db.query("select outcome, count(*)::int from graphile_worker._hathi_job_cancellations group by 1"),
  ).toEqual([{ outcome: "cancelled", count: 3 }]);
});

test("a sweep waits for no application: what a transaction holds is recovered by a later one, with its queue", async () => {
  const db = await freshDatabase();
  await worker(db, "dead", 1_000);
  const [held1, free1] = [
    await held(db, "dead", "task", {}, { queue: "q" }),
    await held(db, "dead", "task", {}, { queue: "r" }),
  ] as const;
  const application = await db.pool.connect();
  try {
    await application.query("begin");
    await application.query("select from graphile_worker._private_jobs where id = $1 for update", [held1]);
    expect(await sweepIn(db)).toMatchObject({ jobs: [{ id: free1 }], hasLeftovers: true });
    expect(await sweepIn(db)).toMatchObject({ jobs: [], hasLeftovers: true });
    const owners = "select queue_name, locked_by from graphile_worker._private_job_queues order by 1";
    expect(await db.query(owners)).toEqual([
      { queue_name: "q", locked_by: "dead" },
      { queue_name: "r", locked_by: null },
    ]);
    await application.query("rollback");
  } finally {
    application.release();
  }
  expect(await sweepIn(db)).toMatchObject({ jobs: [{ id: held1 }], hasLeftovers: false });
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("a job is recovered together with its queue: while an application holds the queue's row, both stay with their worker", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "frozen", 1_000);
  const id = await held(db, "frozen", "task", {}, { queue: "q" });
  const application = await db.pool.connect();
  try {
    await application.query("begin");
    await application.query("select from graphile_worker._private_job_queues for no key update");
    expect(await sweepIn(db)).toMatchObject({ workerIds: ["frozen"], jobs: [], hasLeftovers: true });
    expect(await db.job(id)).toMatchObject({ locked_by: "frozen", attempts: 1 });
    await application.query("rollback");
  } finally {
    application.release();
  }
  // Otherwise the worker, awake again, could release a queue whose job waits to be adopted.
  expect(await sweepIn(db)).toMatchObject({ jobs: [{ id }], hasLeftovers: false });
  expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([
    { locked_by: "hathi-recovery" },
  ]);
});

test("a job whose queue was released is over, so it is no suspect", async () => {
  const db = await freshDatabase();
  await heir(db);
  await worker(db, "dead", 1_000);
  const running = await held(db, "dead", "task", {}, { queue: "q" });
  // Its row could not be written when it ended, because a transaction held it.
  const ended = await held(db, "dead", "task", {}, { queue: "r" });
  await db.query(
    "update graphile_worker._private_job_queues set locked_by = null, locked_at = null where queue_name = 'r'",
  );
  await sweepIn(db);
  expect(await db.job(ended)).toMatchObject({ locked_by: null, attempts: 0, last_error: null });
  expect(await db.query("select job_id from graphile_worker._hathi_job_crashes")).toEqual([{ job_id: running }]);
});

test("a job whose row is held keeps its place in front of its queue: what was claimed behind it is no suspect and does not overtake", async () => {
  const db = await freshDatabase();
  await heir(db);
  const ids: string[] = [];
  for (let n = 0; n < 3; n++) ids.push(await addJob(db, "task", {}, { queue: "q" }));
  await worker(db, "dead", 1_000, { concurrency: 5 });
  for (const id of ids.slice(0, 2)) await hold(db, id, "dead");
  const application = await db.pool.connect();
  try {
    await application.query("begin");
    await application.query("select from graphile_worker._private_jobs where id = $1 for update", [ids[0]]);
    await sweepIn(db);
    await application.query("rollback");
  } finally {
    application.release();
  }
  expect(await db.job(ids[1]!)).toMatchObject({ locked_by: null, attempts: 0, last_error: null });
  await sweepIn(db);
  expect(await db.job(ids[0]!)).toMatchObject({ locked_by: "hathi-recovery" });
  expect(await db.query("select job_id from graphile_worker._hathi_job_crashes")).toEqual([{ job_id: ids[0] }]);
});

test("heartbeats and losses from the future count as now, since the clock was set back", async () => {
  const db = await freshDatabase();
  await worker(db, "ahead", -3_600);
  await db.query(
    "insert into graphile_worker._hathi_worker_lines (id, key, lost_at) values ('ahead', 1, now() + interval '1 hour')",
  );
  await db.query("select graphile_worker._hathi_watch_lines(interval '5 seconds')");
  await sweepIn(db);
  expect(
    await db.query(
      "select last_heartbeat_at <= now() as beat, lost_at <= now() as lost from graphile_worker._private_workers join graphile_worker._hathi_worker_lines using (id)",
    ),
  ).toEqual([{ beat: true, lost: true }]);
});

test("a failure between deaths clears a job, and so does being rescheduled after it was failed for good", async () => {
  const db = await freshDatabase();
  const id = await addJob(db, "task");
  let deaths = 0;
  const die = async (): Promise<SweepResult> => {
    const worker_ = `dead-${++deaths}`;
    await worker(db, worker_, 1_000);
    await hold(db, id, worker_);
    return sweepIn(db);
  };
  await die();
  await die();
  await db.query("update graphile_worker._private_jobs set attempts = 1"); // failed in between
  await die();
  await die();
  expect(await db.job(id)).toMatchObject({ attempts: 1 });
  expect(await die()).toMatchObject({ jobs: [{ id, outcome: "suspect" }] });
  expect(await db.job(id)).toMatchObject({ attempts: 25, last_error: expect.stringMatching(/^WorkerCrashed/) });
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
    keepRules: keepingFor((task) => (task === "failed" ? 1 : undefined)),
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
    last_error: "WorkerCrashed: the worker died while this job was running.",
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
  expect(await db.query(keptOfCrashes)).toEqual([
    {
      job_id: failed,
      task_identifier: "failed",
      attempt: 1,
      outcome: "failed",
      worker_id: "dead",
      payload: {},
      has_times: true,
      days: 1,
      failures: 1,
    },
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
  pool.on("error", () => undefined);
  const frozen = deferred();
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    client.end = (() => Promise.resolve()) as typeof client.end;
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    client.query = (async (config: { text?: string }) => {
      const result = await query(config);
      if (!config.text?.includes("pg_try_advisory_xact_lock")) return result;
      frozen.resolve();
      return new Promise(() => undefined);
    }) as unknown as typeof client.query;
  });
  sweepIn({ ...db, pool }).catch(() => undefined);
  await frozen.promise;
  expect((await sweepIn(db)).isDone).toBe(false);
  await until(async () => (await sweepIn(db)).isDone);
  expect(await db.job(id)).toMatchObject({ locked_by: null });
}, 40_000);
