import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { JobCancelledError } from "../../src/job-errors.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { heldTask, type StartedWorker, startWorker } from "../worker/kit.ts";
import { cancellationOf, obedientTask, stubbornTask, utilsOf } from "./kit.ts";

/** Notifications arrive, and what a worker asks because it began to listen is over: it has no jobs to ask about. */
async function hears(db: TestDatabase, worker: StartedWorker): Promise<void> {
  await until(async () => {
    await db.query("select pg_notify('jobs:insert', '{}')");
    return worker.of("pool:listen:notification").length > 0;
  });
}

test("a waiting job that is cancelled is gone at once, and the record says who and why", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const job = await utils.addJob("t", {}, { jobKey: "k" });

  const result = await utils.cancelJobs([job.id], { reason: "not wanted" });

  expect(result.cancelled.map(({ id }) => id)).toEqual([job.id]);
  expect(result.stopping).toEqual([]);
  expect(await db.job(job.id)).toBeUndefined();
  const record = await cancellationOf(db, job.id);
  expect(record).toMatchObject({ reason: "not wanted", outcome: "cancelled", task_identifier: "t" });
  expect(record?.cancelled_by).toMatch(/postgres/);
});

test("a running job is told to stop with the reason, and is then cancelled and gone", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task });
  const job = await utils.addJob("t", {}, { jobKey: "k" });
  const helpers = await begun(1);

  const result = await utils.cancelJobs([job.id], { reason: "enough" });
  expect(result.stopping.map(({ id }) => id)).toEqual([job.id]);
  await worker.completed(1);

  const reason = helpers.abortSignal.reason as JobCancelledError;
  expect(reason).toBeInstanceOf(JobCancelledError);
  expect(reason.cancelReason).toBe("enough");
  expect(worker.of("job:cancelling").map((event) => event.job.id)).toEqual([job.id]);
  expect(worker.of("job:cancelled").map((event) => event.job.id)).toEqual([job.id]);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
  expect(worker.of("job:error")).toEqual([]);
  expect(await db.job(job.id)).toBeUndefined();
  expect(await cancellationOf(db, job.id)).toMatchObject({ outcome: "cancelled", reason: "enough" });
});

test("a cancelled job that succeeds all the same counts as done", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const held = heldTask();
  const worker = await startWorker(db, { t: held.task });
  const job = await utils.addJob("t", {});
  await held.begun(1);
  await utils.cancelJobs([job.id]);
  await worker.nth("job:cancelling");

  held.release(0);
  await worker.completed(1);

  expect(worker.of("job:complete")[0]).toMatchObject({ error: null, outcome: "succeeded" });
  expect(await db.job(job.id)).toBeUndefined();
  await db.query("select graphile_worker._hathi_tidy_control()");
  expect(await cancellationOf(db, job.id)).toMatchObject({ outcome: "ended" });
});

test("a cancel that no notification tells of is found by the next poll", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task }, { useNotifications: false, pollInterval: 50 });
  const job = await utils.addJob("t", {});
  await begun(1);
  await utils.cancelJobs([job.id]);
  await worker.completed(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
  expect(await db.job(job.id)).toBeUndefined();
});

test.each([
  { others: 0, payload: "its id" },
  { others: 300, payload: "no ids, since they would not fit" },
])("a notification with $payload alone tells a running job", async ({ others }) => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task });
  await hears(db, worker);
  const elsewhere = await utils.addJobs(Array.from({ length: others }, () => ({ identifier: "else", payload: {} })));
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'other'");
  const addedAt = performance.now();
  const { id } = await utils.addJob("t", {});
  const { abortSignal } = await begun(1);
  let abortedAt = Number.POSITIVE_INFINITY;
  abortSignal.addEventListener("abort", () => {
    abortedAt = performance.now();
  });
  await utils.cancelJobs([id, ...elsewhere.map((job) => job.id)]);
  await worker.nth("job:cancelling");
  // However seldom jobs are polled for, cancels are looked for every 10 s; the first look that finds a new job does not ask about it.
  expect(abortedAt - addedAt).toBeLessThan(10_000);
  await worker.completed(1);
  expect(await db.job(id)).toBeUndefined();
});

test("a cancel whose notification is lost is found by polling, while others arrive", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task }, { pollInterval: 50 });
  await hears(db, worker);
  const { id } = await utils.addJob("t", {});
  await begun(1);
  // As a cancel does it, but for the notification.
  await db.pool.query(`
    insert into graphile_worker._hathi_job_cancellations (job_id, task_identifier, reason) values (${id}, 't', 'unheard');
    insert into graphile_worker._private_job_retirements (id) values (${id});
    update graphile_worker._private_jobs set key = null, attempts = max_attempts where id = ${id};`);
  expect((await worker.nth("job:cancelling")).error.message).toMatch(/unheard/);
  await worker.completed(1);
  expect(await cancellationOf(db, id)).toMatchObject({ outcome: "cancelled" });
});

test("a job that fails before its worker has heard of the cancel is cancelled, not tried again", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const held = heldTask();
  const job = await utils.addJob("t", {});
  const worker = await startWorker(db, { t: held.task }, { useNotifications: false });
  await held.begun(1);
  await utils.cancelJobs([job.id], { reason: "quietly" });
  held.release(0, new Error("boom"));
  await worker.completed(1);
  expect(await db.job(job.id)).toBeUndefined();
  expect(await cancellationOf(db, job.id)).toMatchObject({ outcome: "cancelled", reason: "quietly" });
  expect(worker.of("job:cancelled")).toHaveLength(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
});

test("claimed jobs that have not started do not start once they are cancelled", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const held = heldTask();
  const worker = await startWorker(db, { t: held.task }, { preset: { worker: { localQueue: { size: 10 } } } });
  const jobs = await utils.addJobs(Array.from({ length: 4 }, () => ({ identifier: "t", payload: {} })));
  await held.begun(1);
  await until(async () => (await db.jobs()).every(({ locked_at }) => locked_at !== null));
  const result = await utils.cancelJobs(jobs.map(({ id }) => id));
  expect(result.stopping).toHaveLength(4);
  await worker.nth("job:cancelling"); // it heard of all of them together
  held.release(0, new Error("stopped"));
  await until(async () => (await db.jobs()).length === 0);
  await until(async () => {
    const rows = await db.query("select outcome from graphile_worker._hathi_job_cancellations");
    return rows.every(({ outcome }) => outcome === "cancelled") && rows.length === 4;
  });
  expect(held.started).toHaveLength(1);
  expect(worker.of("job:start")).toHaveLength(1);
});

test("a cancel that is heard of before the response to the claim arrives counts", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const proxy = await startProxy(db.url);
  const { task } = obedientTask();
  const options = { connectionString: proxy.url, listenConnectionString: db.url };
  const worker = await startWorker(db, { t: task }, options);
  await worker.nth("pool:listen:success");
  proxy.lag(400);
  const job = await utils.addJob("t", {});
  await until(async () => (await db.job(job.id))?.locked_at, { what: "it is claimed" });
  await utils.cancelJobs([job.id]);
  // Two polls would take longer.
  await until(() => worker.of("job:cancelled").length === 1, { withinMs: 9_000 });
  expect(await db.job(job.id)).toBeUndefined();
});

test("a job whose large payload is still being read does not start once it is cancelled", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const proxy = await startProxy(db.url);
  const { task, started } = obedientTask();
  const options = { connectionString: proxy.url, listenConnectionString: db.url };
  const worker = await startWorker(db, { t: task }, options);
  await worker.nth("pool:listen:success");
  proxy.throttle(500_000);
  const job = await utils.addJob("t", { text: randomBytes(1_500_000).toString("base64") });
  await until(async () => (await db.job(job.id))?.locked_at, { what: "it is claimed" });
  await utils.cancelJobs([job.id]);
  await until(() => worker.of("job:cancelled").length === 1);
  expect(started).toEqual([]);
  expect(await db.job(job.id)).toBeUndefined();
});

test("two cancels at the same time agree, and the first reason stays", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun } = obedientTask();
  const worker = await startWorker(db, { t: task });
  const running = await utils.addJob("t", {});
  await begun(1);
  const waiting = await utils.addJob("other", {});
  const results = await Promise.all(
    ["a", "b", "c", "d"].map((reason) => utils.cancelJobs([waiting.id, running.id], { reason })),
  );
  await worker.completed(1);
  expect(results.flatMap(({ cancelled }) => cancelled)).toHaveLength(1);
  expect(await db.jobs()).toEqual([]);
  const records = await db.query("select outcome from graphile_worker._hathi_job_cancellations");
  expect(records).toEqual([{ outcome: "cancelled" }, { outcome: "cancelled" }]);
});

test("jobs are cancelled by a filter; one that says nothing is refused", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await utils.addJobs(["a", "a", "b"].map((identifier) => ({ identifier, payload: {} })));
  const result = await utils.cancelJobs({ task: "a" });
  expect(result.cancelled).toHaveLength(2);
  expect((await db.jobs()).map(({ task_identifier }) => task_identifier)).toEqual(["b"]);
  await expect(utils.cancelJobs({})).rejects.toThrow(/Say which jobs to cancel/);
  await expect(utils.cancelJobs(["x"])).rejects.toThrow(/whole number/);
});

test("a cancel in a caller's transaction counts when that commits, and not if it is rolled back", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const job = await utils.addJob("t", {});
  const client = await db.pool.connect();
  try {
    for (const end of ["rollback", "commit"]) {
      await client.query("begin");
      await utils.withTransaction(client).cancelJobs([job.id]);
      await client.query(end);
      expect((await db.job(job.id)) === undefined).toBe(end === "commit");
    }
    const second = await utils.addJob("filtered", {});
    await client.query("begin");
    await utils.withTransaction(client).cancelJobs({ task: "filtered" });
    await client.query("commit");
    expect(await db.job(second.id)).toBeUndefined();
  } finally {
    client.release();
  }
});

test.each([
  { how: "succeeds", outcome: "succeeded" },
  { how: "fails", outcome: "cancelled" },
])(
  "a running job that $how while the transaction that cancels it is open has $outcome when that commits; its queue goes on",
  async ({ how, outcome }) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const held = heldTask();
    const worker = await startWorker(db, { t: held.task });
    const { id } = await utils.addJob("t", {}, { queueName: "q" });
    await held.begun(1);
    const next = await utils.addJob("t", {}, { queueName: "q" });
    const client = await db.pool.connect();
    try {
      await client.query("begin");
      const { stopping } = await utils.withTransaction(client).cancelJobs([id]);
      expect(stopping.map((job) => job.id)).toEqual([id]);
      held.release(0, how === "fails" ? new Error("boom") : undefined);
      await held.begun(2);
      held.release(1);
      await worker.completed(1);
      expect(worker.of("job:complete").map(({ job }) => job.id)).toEqual([next.id]);
      await client.query("commit");
    } finally {
      client.release();
    }
    await worker.completed(2);
    expect(worker.of("job:complete")[1]).toMatchObject({ job: { id }, outcome });
    expect(await db.jobs()).toEqual([]);
  },
);

test.each(["stop", "kill"] as const)(
  "a cancelled job that does not end before its worker does (%s) is cancelled",
  async (end) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const stuck = stubbornTask();
    const worker = await startWorker(db, { t: stuck.task }, { shutdownGracePeriod: 50 });
    const { id } = await utils.addJob("t", {}, { queueName: "q" });
    await stuck.begun(1);
    await utils.cancelJobs([id], { reason: "enough" });
    await worker.nth("job:cancelling");
    await worker.runner[end]();
    expect(await db.job(id)).toBeUndefined();
    expect(await cancellationOf(db, id)).toMatchObject({ outcome: "cancelled", reason: "enough" });
    expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
  },
);

test("10,000 jobs are cancelled in one call", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const jobs = await utils.addJobs(Array.from({ length: 10_000 }, () => ({ identifier: "t", payload: {} })));
  const result = await utils.cancelJobs(
    jobs.map(({ id }) => id),
    { reason: "all of it" },
  );
  expect(result.cancelled).toHaveLength(10_000);
  expect(await db.jobs()).toEqual([]);
});

test("a new job under the key of a running one can stop that one in the same call", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { task, begun, started } = obedientTask();
  const worker = await startWorker(db, { t: task }, { concurrency: 2 });
  const first = await utils.addJob("t", { n: 1 }, { jobKey: "k" });
  const helpers = await begun(1);
  const second = await utils.addJob("t", { n: 2 }, { jobKey: "k", cancelRunning: true });
  await worker.completed(1);
  expect(second.id).not.toBe(first.id);
  expect((helpers.abortSignal.reason as Error).message).toMatch(/Replaced by a new job with the key 'k'/);
  expect(await db.job(first.id)).toBeUndefined();
  await begun(2);
  expect(started[1]!.job.id).toBe(second.id);
});

test("a job under the key of a waiting one that is claimed in the same moment stops that one", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const replace = async (): Promise<string> => (await utils.addJob("t", {}, { jobKey: "k", cancelRunning: true })).id;
  const claim = `
    update graphile_worker._private_jobs set attempts = attempts + 1, locked_at = now(), locked_by = 'pool-1'
    where id = (select id from graphile_worker._private_jobs where is_available limit 1 for update skip locked)`;
  const ids = new Set<string>();
  let isOver = false;
  const claiming = (async () => {
    while (!isOver) await db.query(claim);
  })();
  for (let n = 0; n < 60; n++) for (const id of await Promise.all([replace(), replace(), replace()])) ids.add(id);
  isOver = true;
  await claiming;
  const rows = await db.query<{ id: string; key: string | null; is_cancelled: boolean }>(`
    select job.id::text, job.key, entry.job_id is not null as is_cancelled
    from graphile_worker._private_jobs as job
    left join graphile_worker._hathi_job_cancellations as entry on entry.job_id = job.id`);
  // Whoever lost its key was told to stop; all that ran were told.
  expect(rows.filter(({ key, is_cancelled }) => (key === null) !== is_cancelled)).toEqual([]);
  expect(rows.map(({ id }) => id).toSorted()).toEqual([...ids].toSorted());
});

test("jobs that failed permanently are left alone, and a cancelled job cannot be rescheduled", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const dead = await utils.addJob("t", {});
  await utils.permanentlyFailJobs([dead.id]);
  expect(await utils.cancelJobs([dead.id])).toEqual({ cancelled: [], stopping: [] });
  expect(await db.job(dead.id)).toBeDefined();

  const job = await utils.addJob("t", {});
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'dead' where id = $1", [
    job.id,
  ]);
  await utils.cancelJobs([job.id]);
  await utils.forceUnlockWorkers(["dead"]);
  expect(await utils.rescheduleJobs([job.id], { attempts: 0, maxAttempts: 10 })).toEqual([]);
  const held = heldTask();
  held.releaseAll();
  await startWorker(db, { t: held.task });
  const last = await utils.addJob("t", {});
  await until(async () => !(await db.job(last.id)));
  expect(held.started.map(({ id }) => id)).toEqual([last.id]);
});
