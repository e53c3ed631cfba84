import { expect, onTestFinished, test } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import { runTaskListOnce } from "../../src/runner/run-task-list.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import { openTestQueue } from "../../src/testing/test-queue.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

async function utilsFor(db: TestDatabase): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url });
  onTestFinished(() => utils.release());
  return utils;
}

/** Waits until the worker hears notifications. */
const listening = (worker: Awaited<ReturnType<typeof startWorker>>) => worker.nth("pool:listen:success");

async function queueRow(db: TestDatabase, name: string): Promise<Record<string, unknown> | undefined> {
  const [row] = await db.query(
    "select locked_at::text, locked_by from graphile_worker._private_job_queues where queue_name = $1",
    [name],
  );
  return row;
}

test("a paused task does not start until it is resumed, which starts it at once", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const ran: string[] = [];
  const worker = await startWorker(db, {
    mail: async () => void ran.push("mail"),
    other: async () => void ran.push("other"),
  });
  await listening(worker);

  await utils.pause({ task: "mail" }, { reason: "provider is down", by: "ann" });
  const { pause } = await worker.nth("pool:pause");
  expect(pause).toMatchObject({ kind: "task", name: "mail", reason: "provider is down", pausedBy: "ann", until: null });
  await utils.addJob("mail", {});
  await utils.addJob("other", {});
  await worker.completed(1);
  expect(ran).toEqual(["other"]);

  expect(await utils.resume({ task: "mail" })).toBe(true);
  await worker.completed(2);
  expect(ran).toEqual(["other", "mail"]);
  expect(worker.of("pool:resume")).toHaveLength(1);
  expect(await utils.resume({ task: "mail" })).toBe(false);
});

test("a pause ends by itself, and workers wake up for what waited", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.pause({ all: true }, { until: new Date(Date.now() + 1_500) });
  await utils.addJob("mail", {});
  const worker = await startWorker(db, { mail: async () => undefined });
  await worker.nth("pool:pause");
  await worker.completed(1);
  expect(await utils.listPauses()).toEqual([]);
  expect(await db.query("select from graphile_worker._hathi_pauses")).toEqual([]);
});

test("pauses of a task and of everything end independently", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.pause({ task: "mail" });
  await utils.pause({ all: true });
  await utils.addJob("mail", {});
  await utils.addJob("other", {});
  const ran: string[] = [];
  const tasks = { mail: async () => void ran.push("mail"), other: async () => void ran.push("other") };
  const worker = await startWorker(db, tasks);
  await worker.nth("pool:pause", 2);
  await utils.resume({ all: true });
  await worker.completed(1);
  expect(ran).toEqual(["other"]);
  expect((await utils.listPauses()).map(({ kind, name }) => [kind, name])).toEqual([["task", "mail"]]);
  await utils.resume({ task: "mail" });
  await worker.completed(2);
  expect(ran).toEqual(["other", "mail"]);
});

test("a worker is paused by its id, and the others go on", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const ran: string[] = [];
  const first = await startWorker(db, { mail: async () => void ran.push("first") });
  const second = await startWorker(db, { mail: async () => void ran.push("second") });
  await Promise.all([listening(first), listening(second)]);
  await utils.pause({ worker: first.pool().id });
  await first.nth("pool:pause");
  for (let i = 0; i < 5; i++) await utils.addJob("mail", {});
  await second.completed(5);
  expect(ran).toEqual(Array(5).fill("second"));
  expect(second.of("pool:pause")).toEqual([]);
});

test("jobs claimed ahead and not started go back without using an attempt", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const held = deferred();
  await utils.addJobs(Array.from({ length: 5 }, () => ({ identifier: "mail", payload: {} })));
  const worker = await startWorker(
    db,
    { mail: () => held.promise },
    { preset: { worker: { localQueue: { size: 10, ttl: 600_000 } } } },
  );
  onTestFinished(() => held.resolve());
  await worker.nth("job:start");
  await until(async () => (await db.jobs()).every((job) => job.locked_at), { what: "all jobs are claimed" });
  await listening(worker);
  await utils.pause({ task: "mail" });
  await until(async () => (await db.jobs()).filter((job) => job.locked_at).length === 1, { what: "four are back" });
  expect((await db.jobs()).map((job) => job.attempts).sort()).toEqual([0, 0, 0, 0, 1]);
  held.resolve();
  await worker.completed(1);
  await utils.resume({ task: "mail" });
  await worker.completed(5);
  expect(await db.jobs()).toEqual([]);
});

test("without notifications, held jobs go back as well", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const held = deferred();
  await utils.addJobs(Array.from({ length: 5 }, () => ({ identifier: "mail", payload: {} })));
  const worker = await startWorker(
    db,
    { mail: () => held.promise },
    { useNotifications: false, preset: { worker: { localQueue: { size: 10, ttl: 600_000 } } } },
  );
  onTestFinished(() => held.resolve());
  await worker.nth("job:start");
  await until(async () => (await db.jobs()).every((job) => job.locked_at), { what: "all jobs are claimed" });
  await utils.pause({ all: true });
  await until(async () => (await db.jobs()).filter((job) => job.locked_at).length === 1, { what: "four are back" });
  held.resolve();
});

test("a paused queue is locked for everybody, and its row is made if it is missing", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.pause({ queue: "q" });
  expect(await queueRow(db, "q")).toEqual({ locked_at: "infinity", locked_by: "hathi:paused" });
  await utils.addJob("mail", {}, { queueName: "q" });
  await utils.addJob("mail", {}, { queueName: "other" });
  await runOnce({ connectionString: db.url, taskList: { mail: async () => undefined } });
  expect((await db.jobs()).map((job) => job.queue_name)).toEqual(["q"]);

  await utils.forceUnlockWorkers(["hathi:paused"]);
  await db.query("select graphile_worker.recover_dead_worker_jobs(array['hathi:paused'])");
  await utils.cleanup({ tasks: ["GC_JOB_QUEUES"] });
  expect(await queueRow(db, "q")).toEqual({ locked_at: "infinity", locked_by: "hathi:paused" });

  await utils.resume({ queue: "q" });
  expect(await queueRow(db, "q")).toEqual({ locked_at: null, locked_by: null });
  await runOnce({ connectionString: db.url, taskList: { mail: async () => undefined } });
  expect(await db.jobs()).toEqual([]);
});

test("a queue that is paused while its job runs stays held when the job ends, whoever releases it", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const held = deferred();
  onTestFinished(() => held.resolve());
  await utils.addJob("mail", {}, { queueName: "q" });
  await utils.addJob("mail", {}, { queueName: "q" });
  const worker = await startWorker(db, { mail: () => held.promise }, { concurrency: 2 });
  await worker.nth("job:start");
  await listening(worker);
  await utils.pause({ queue: "q" });
  expect(await queueRow(db, "q")).toEqual({ locked_at: "infinity", locked_by: worker.pool().id });
  // As our lock keeper does for a long job.
  await db.query("update graphile_worker._private_job_queues set locked_at = now() where queue_name = 'q'");
  expect(await queueRow(db, "q")).toEqual({ locked_at: "infinity", locked_by: worker.pool().id });
  held.resolve();
  await worker.completed(1);
  await until(async () => (await queueRow(db, "q"))!.locked_by === "hathi:paused");
  expect(worker.of("job:start")).toHaveLength(1);
  await utils.resume({ queue: "q" });
  await worker.completed(2);
  expect(worker.of("job:start").map(({ job }) => job.attempts)).toEqual([1, 1]);
});

test("a queue that is resumed while its job runs goes on being the job's", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const held = deferred();
  onTestFinished(() => held.resolve());
  await utils.addJobs(Array.from({ length: 2 }, () => ({ identifier: "mail", payload: {}, queueName: "q" })));
  const worker = await startWorker(db, { mail: () => held.promise }, { concurrency: 2 });
  await worker.nth("job:start");
  await utils.pause({ queue: "q" });
  await utils.resume({ queue: "q" });
  const row = await queueRow(db, "q");
  expect(row).toMatchObject({ locked_by: worker.pool().id });
  expect(row!.locked_at).not.toBe("infinity");
  held.resolve();
  await worker.completed(2);
});

test("pausing and resuming a queue waits for no transaction that holds its row or makes it", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.addJob("mail", {}, { queueName: "q" });
  const holder = await db.pool.connect();
  onTestFinished(() => holder.release(true));
  await holder.query("begin");
  await holder.query("select from graphile_worker._private_job_queues where queue_name = 'q' for update");
  await holder.query("select graphile_worker.add_job('mail', queue_name => 'new')");

  await utils.pause({ queue: "q" });
  await utils.pause({ queue: "new" });
  await holder.query("commit");
  const ran: string[] = [];
  const taskList = { mail: async () => void ran.push("mail") };
  await runOnce({ connectionString: db.url, taskList });
  expect(ran).toEqual([]);
  for (const name of ["q", "new"])
    expect(await queueRow(db, name)).toEqual({ locked_at: "infinity", locked_by: "hathi:paused" });

  await holder.query("begin");
  await holder.query("select from graphile_worker._private_job_queues for update");
  await utils.resume({ queue: "q" });
  await utils.resume({ queue: "new" });
  expect(await utils.listPauses()).toEqual([]);
  await holder.query("commit");
  await runOnce({ connectionString: db.url, taskList });
  expect(ran).toEqual(["mail", "mail"]);
  expect(await db.query("select from graphile_worker._hathi_pauses")).toEqual([]);
});

test("pausing again replaces until and reason and keeps when it began", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const first = await utils.pause({ task: "mail" }, { reason: "one" });
  const ends = new Date(Date.now() + 60_000);
  const second = await utils.pause({ task: "mail" }, { reason: "two", until: ends });
  expect(second).toEqual({ ...first, reason: "two", until: ends });
  expect(await utils.listPauses()).toEqual([second]);
});

test("a pause from SQL whose end has passed is none, and ends one that was there", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await db.query("select graphile_worker.pause_work('all', until => now() - interval '1 hour')");
  const worker = await startWorker(db, { mail: async () => undefined });
  await listening(worker);
  await utils.pause({ queue: "q" }, { until: new Date(8.64e15) });
  await worker.nth("pool:pause");
  await utils.addJob("mail", {}, { queueName: "q" });
  await utils.addJob("mail", {});
  await worker.completed(1);
  expect((await db.jobs()).map((job) => job.queue_name)).toEqual(["q"]);
  await db.query("select graphile_worker.pause_work('queue', 'q', now() - interval '1 hour')");
  await worker.completed(2);
  expect(await utils.listPauses()).toEqual([]);
});

test("SQL clients can pause, list and resume", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.pause_work('queue', 'q', now() + interval '1 hour', 'import')");
  const rows = await db.query("select kind, name, reason from graphile_worker.list_pauses()");
  expect(rows).toEqual([{ kind: "queue", name: "q", reason: "import" }]);
  expect(await db.query("select graphile_worker.resume_work('queue', 'q') as was_paused")).toEqual([
    { was_paused: true },
  ]);
  await expect(db.query("select graphile_worker.pause_work('jobs', 'q')")).rejects.toThrow(
    "Invalid kind of pause 'jobs'.",
  );
  await expect(db.query("select graphile_worker.pause_work('task')")).rejects.toThrow(
    "The name of the task is missing.",
  );
});

test.each([
  [{}, undefined],
  [{ task: "" }, undefined],
  [{ task: "a", queue: "b" }, undefined],
  [{ all: false }, undefined],
  [{ tasks: "a" }, undefined],
  [{ all: true }, { until: new Date(0) }],
  [{ all: true }, { until: "soon" }],
  [{ all: true }, { for: "1h" }],
  [{ all: true }, { reason: 1 }],
] as never[][])("pause refuses %o with %o", async (target, options) => {
  const { makePauseAdmin } = await import("../../src/control/pause-admin.ts");
  const admin = makePauseAdmin({ run: () => Promise.reject(new Error("asked the database")) });
  await expect(admin.pause(target as never, options)).rejects.toMatchObject({ code: "BAD_JOB_SPEC" });
});

test("lifecycle hooks are told of pauses and their ends", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  const told: string[] = [];
  const worker = await startWorker(
    db,
    { mail: async () => undefined },
    {
      hooks: {
        pause: ({ pause, workerId }) => void told.push(`paused ${pause.name} ${workerId}`),
        resume: ({ pause, workerId }) => void told.push(`resumed ${pause.name} ${workerId}`),
      },
    },
  );
  await listening(worker);
  await utils.pause({ queue: "q" });
  await worker.nth("pool:pause");
  await utils.resume({ queue: "q" });
  await worker.nth("pool:resume");
  const { id } = worker.pool();
  expect(told).toEqual([`paused q ${id}`, `resumed q ${id}`]);
  expect(worker.lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^Not starting what is paused: queue 'q', paused by /),
  );
});

test("the testing kit leaves paused jobs alone until its clock ends the pause", async () => {
  const db = await freshDatabase({ migrated: false });
  const ran: string[] = [];
  const queue = await openTestQueue({
    connectionString: db.url,
    taskList: { mail: async () => void ran.push("mail"), other: async () => void ran.push("other") },
  });
  onTestFinished(() => queue.drop());
  await queue.utils.pause({ task: "mail" }, { until: new Date(Date.now() + 3_600_000) });
  await queue.utils.pause({ queue: "q" }, { until: new Date(Date.now() + 3_600_000) });
  await queue.addJob("mail", {});
  await queue.addJob("other", {}, { queueName: "q" });
  await queue.addJob("other", {});
  await queue.runDueJobs();
  expect(ran).toEqual(["other"]);
  queue.clock.advance({ hours: 2 });
  expect(await queue.utils.listPauses()).toEqual([]);
  await queue.runDueJobs();
  expect(ran.toSorted()).toEqual(["mail", "other", "other"]);
});

test("recurring jobs of a paused task are added and wait", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.pause({ task: "tick" });
  const worker = await startWorker(db, { tick: async () => undefined }, { crontab: "* * * * * tick ?seconds=*" });
  await until(async () => (await db.jobs()).length >= 2, { what: "two ticks are waiting" });
  expect(worker.of("job:start")).toEqual([]);
});

test("a single connection obeys a pause and its end, too", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db);
  await utils.pause({ task: "mail" });
  await utils.addJob("mail", {});
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  const ran: string[] = [];
  await runTaskListOnce({}, { mail: async () => void ran.push("mail") }, client);
  expect(ran).toEqual([]);
  await utils.resume({ task: "mail" });
  await runTaskListOnce({}, { mail: async () => void ran.push("mail") }, client);
  expect(ran).toEqual(["mail"]);
});
