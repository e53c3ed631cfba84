import { expect, test } from "vitest";
import { CancelJobError, SnoozeError, UnrecoverableError } from "../../src/job-errors.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

interface Attempt {
  readonly job_id: string;
  readonly task_identifier: string;
  readonly attempt: number;
  readonly outcome: string;
  readonly error: string | null;
  readonly error_class: string | null;
  readonly fingerprint: string | null;
  readonly worker_id: string;
  readonly queue_name: string | null;
  readonly key: string | null;
  readonly payload: unknown;
  readonly result: unknown;
}

const attemptsIn = (db: TestDatabase): Promise<Attempt[]> =>
  db.query<Attempt & Record<string, unknown>>(
    "select *, job_id::text as job_id from graphile_worker._hathi_history_attempts order by settled_at, entry",
  );
const batchesIn = (db: TestDatabase): Promise<{ job_ids: string[]; task_identifier: string; wait_ms: number[] }[]> =>
  db.query(
    "select *, job_ids::text[] as job_ids from graphile_worker._hathi_history_batches order by settled_at, first_id",
  );

test("with history off, nothing is kept and no partition is made", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(db, { good: () => 7, bad: () => Promise.reject(new Error("no")) });
  await runner.addJob("good", {});
  await runner.addJob("bad", {});
  await completed(2);
  expect(await attemptsIn(db)).toEqual([]);
  expect(await batchesIn(db)).toEqual([]);
  expect(
    await db.query("select inhrelid from pg_inherits where inhparent::regclass::text like '%_hathi_history%'"),
  ).toHaveLength(2 + 11); // the default partitions and their indexes
});

test("successes share a row for each task, with ids, attempts, times, queues and keys", async () => {
  const db = await freshDatabase();
  const { runner, completed, pool } = await startWorker(
    db,
    { a: () => undefined, b: () => undefined },
    { history: "outcomes", concurrency: 10 },
  );
  const jobs = await runner.addJobs([
    { identifier: "a", payload: {} },
    { identifier: "b", payload: {}, queueName: "q" },
    { identifier: "a", payload: {}, jobKey: "k" },
  ]);
  await completed(3);
  const rows = await db.query(`
    select batch.task_identifier, batch.worker_id, job.*
    from graphile_worker._hathi_history_batches as batch
    cross join unnest(job_ids::text[], attempts, wait_ms, run_ms, queue_names, keys) as job (id, attempt, wait, run, queue, key)
    order by job.id`);
  const common = { worker_id: pool().id, attempt: null, wait: expect.any(Number), run: expect.any(Number) };
  expect(rows).toEqual([
    { ...common, task_identifier: "a", id: jobs[0]!.id, queue: null, key: null },
    { ...common, task_identifier: "b", id: jobs[1]!.id, queue: "q", key: null },
    { ...common, task_identifier: "a", id: jobs[2]!.id, queue: null, key: "k" },
  ]);
  expect(await attemptsIn(db)).toEqual([]);
});

test("every other attempt has a row of its own, with its error, class and fingerprint", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(
    db,
    {
      fail: () => {
        throw new TypeError("no");
      },
      last: () => Promise.reject(new RangeError("over")),
      giveUp: () => Promise.reject(new UnrecoverableError("never")),
      snooze: () => Promise.reject(new SnoozeError("1h")),
      cancel: () => Promise.reject(new CancelJobError("not needed")),
    },
    { history: "outcomes", concurrency: 5 },
  );
  await runner.addJob("fail", { secret: 1 }, { queueName: "q", jobKey: "k" });
  await runner.addJob("last", {}, { maxAttempts: 1 });
  await runner.addJob("giveUp", {});
  await runner.addJob("snooze", {});
  await runner.addJob("cancel", {});
  await completed(5);
  const byTask = Object.fromEntries((await attemptsIn(db)).map((row) => [row.task_identifier, row]));
  expect(byTask).toMatchObject({
    fail: {
      attempt: 1,
      outcome: "failed",
      error: "no",
      error_class: "TypeError",
      queue_name: "q",
      key: "k",
      payload: null,
    },
    last: { attempt: 1, outcome: "permanentlyFailed", error_class: "RangeError" },
    giveUp: { attempt: 1, outcome: "permanentlyFailed", error: expect.stringContaining("never") },
    snooze: { attempt: 1, outcome: "snoozed", fingerprint: null },
    cancel: { attempt: 1, outcome: "cancelled", error: "not needed", fingerprint: null },
  });
  expect(byTask.fail!.fingerprint).toMatch(/^[0-9a-f]{16}$/);
  expect(await batchesIn(db)).toEqual([]);
});

test("'full' keeps payloads without what is redacted; a task's own option is stronger", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(
    db,
    { a: () => undefined, b: () => Promise.reject(new Error("no")), quiet: () => undefined },
    {
      history: "full",
      redact: ["*.password", "**.token", "top"],
      taskOptions: { quiet: { history: "off" } },
      concurrency: 3,
    },
  );
  await runner.addJob("a", { user: { password: "x", name: "ada" }, top: 1, deep: [{ more: { token: "t", rest: 2 } }] });
  await runner.addJob("b", { password: "stays: it is not below a key" });
  await runner.addJob("quiet", {});
  await completed(3);
  const rows = await attemptsIn(db);
  expect(Object.fromEntries(rows.map(({ task_identifier, payload }) => [task_identifier, payload]))).toEqual({
    a: {
      user: { password: "[redacted]", name: "ada" },
      top: "[redacted]",
      deep: [{ more: { token: "[redacted]", rest: 2 } }],
    },
    b: { password: "stays: it is not below a key" },
  });
  expect(await batchesIn(db)).toEqual([]);
});

test("a payload that cannot be redacted is not kept, and its job is settled all the same", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(db, { a: () => undefined }, { history: "full", redact: ["x"] });
  await db.query(`select graphile_worker.add_job('a', '{"x": 1, "y": "\\u0000"}'::json)`);
  await runner.addJob("a", { x: 1 });
  await completed(2);
  expect((await attemptsIn(db)).map(({ payload }) => payload)).toEqual(
    expect.arrayContaining([null, { x: "[redacted]" }]),
  );
});

test("a result is kept with its job, whatever the level of history", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(
    db,
    { sum: (payload: { a: number; b: number }) => ({ sum: payload.a + payload.b }), none: () => undefined },
    { taskOptions: { sum: { keepResult: true }, none: { keepResult: true, history: "outcomes" } }, concurrency: 2 },
  );
  await runner.addJob("sum", { a: 1, b: 2 });
  await runner.addJob("none", {});
  await completed(2);
  const rows = await attemptsIn(db);
  expect(rows.map(({ task_identifier, outcome, result }) => [task_identifier, outcome, result]).sort()).toEqual([
    ["none", "succeeded", null],
    ["sum", "succeeded", { sum: 3 }],
  ]);
  expect(await batchesIn(db)).toEqual([]);
});

test("results are kept for as long as their task says, and never shorter than its history", async () => {
  const db = await freshDatabase();
  const task = (): number => 7;
  const { runner, completed } = await startWorker(
    db,
    { alone: task, longer: task, shorter: task, usual: task },
    {
      taskOptions: {
        alone: { keepResult: true, resultRetention: "7d" },
        longer: { keepResult: true, resultRetention: "7d", history: "outcomes" },
        shorter: { keepResult: true, resultRetention: "1d", history: "outcomes", retention: { completed: "30d" } },
        usual: { keepResult: true },
      },
    },
  );
  for (const name of ["alone", "longer", "shorter", "usual"]) await runner.addJob(name, {});
  await completed(4);
  expect(
    await db.query(
      `select task_identifier as task, expires_on - (settled_at at time zone 'utc')::date - 1 as days
       from graphile_worker._hathi_history_attempts order by 1`,
    ),
  ).toEqual([
    { task: "alone", days: 7 },
    { task: "longer", days: 7 },
    { task: "shorter", days: 30 },
    { task: "usual", days: 1 },
  ]);
});

test.each([
  ["is too large", () => "x".repeat(1_048_576), /takes 1048578 bytes, and at most 1048576 are kept/],
  ["is no JSON", () => 1n, /cannot be kept, since it is no JSON/],
])("a result that %s fails its job permanently and says why", async (_name, task, message) => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(db, { task }, { taskOptions: { task: { keepResult: true } } });
  const { id } = await runner.addJob("task", {});
  await completed(1);
  const job = await db.job(id);
  expect(job).toMatchObject({ last_error: expect.stringMatching(message) });
  expect(job!.attempts).toBe(job!.max_attempts);
});

test("a success after failures says which attempt it was", async () => {
  const db = await freshDatabase();
  let runs = 0;
  const { runner, completed } = await startWorker(
    db,
    {
      flaky: () => {
        if (++runs < 3) throw new Error("not yet");
      },
    },
    { history: "outcomes", taskOptions: { flaky: { backoff: () => 0 } } },
  );
  const { id } = await runner.addJob("flaky", {});
  await completed(3);
  expect((await attemptsIn(db)).map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [1, "failed"],
    [2, "failed"],
  ]);
  expect(await db.query("select job_ids::text[] as ids, attempts from graphile_worker._hathi_history_batches")).toEqual(
    [{ ids: [id], attempts: [3] }],
  );
});

test("a job that succeeds although it was cancelled says which attempt that was, not how many it had left", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner, completed } = await startWorker(db, { held: held.task }, { history: "outcomes" });
  const { id } = await runner.addJob("held", {}, { maxAttempts: 7 });
  await held.begun(1);
  await db.query("select graphile_worker.cancel_jobs(array[$1::bigint])", [id]);
  held.release(0);
  await completed(1);
  expect(await db.query("select job_ids::text[] as ids, attempts from graphile_worker._hathi_history_batches")).toEqual(
    [{ ids: [id], attempts: null }],
  );
});

test("ids that lie far apart are kept in rows of their own, so that an index finds them", async () => {
  const db = await freshDatabase();
  await db.query(`
    insert into graphile_worker._private_tasks (identifier) values ('t');
    insert into graphile_worker._private_jobs (id, task_id, locked_by, locked_at, attempts) overriding system value
    select id, (select id from graphile_worker._private_tasks), 'me', now(), 1 from unnest('{5,6,5000,900000}'::bigint[]) as id`);
  const settle = `select * from graphile_worker._hathi_complete_jobs_kept(
    'me', '{5,6,5000,900000}', null, '{}', null, '{1,2,3,4}', null, (select array_agg(id) from graphile_worker._private_tasks), '{outcomes}', '{1}',
    '{1}', '{}')`;
  expect(await db.query(settle)).toEqual([{ lost: null, held: null, held_queues: null }]);
  const written = (await batchesIn(db)).map(({ job_ids }) => job_ids);
  expect(written).toEqual([["5", "6"], ["5000"], ["900000"]]);
  expect(await db.query("select run_ms from graphile_worker._hathi_history_batches order by first_id")).toEqual([
    { run_ms: [1, 2] },
    { run_ms: [3] },
    { run_ms: [4] },
  ]);
  // The same again, as after a response that was lost: nothing is left to settle, so nothing is added.
  expect(await db.query(settle)).toMatchObject([{ lost: ["5", "6", "5000", "900000"] }]);
  expect((await batchesIn(db)).map(({ job_ids }) => job_ids)).toEqual(written);
});
