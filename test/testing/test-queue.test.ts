import { expect, inject, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineBatchTask, defineTask, makeWorkerUtils, type TaskListInput } from "../../src/index.ts";
import { openTestQueue, type TestQueue, type TestQueueOptions } from "../../src/testing/index.ts";
import { testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

const connectionString = (): string => inject("postgres").url;

async function openQueue(taskList: TaskListInput = {}, options: TestQueueOptions = {}): Promise<TestQueue> {
  const queue = await openTestQueue({ connectionString: connectionString(), taskList, ...options });
  onTestFinished(() => queue.drop());
  return queue;
}

const boom = (): never => {
  throw new Error("boom");
};

test("runDueJobs runs what is due, in order, with what that adds, and tells how each job ended", async () => {
  const done: unknown[] = [];
  const second = defineTask<{ n: number }>({ identifier: "second", run: ({ n }) => done.push(n) });
  const queue = await openQueue([
    second,
    { first: (payload: { n: number }, helpers) => second.add(helpers, { n: payload.n + 1 }), broken: boom },
  ]);
  await queue.addJobs([
    { identifier: "first", payload: { n: 1 } },
    { identifier: "broken", payload: {} },
    { identifier: "first", payload: { n: 5 }, runAt: new Date(Date.now() + 60_000) },
  ]);
  const outcomes = await queue.runDueJobs();
  expect(outcomes.map(({ job, status, error }) => [job.task_identifier, status, error?.message])).toEqual([
    ["first", "succeeded", undefined],
    ["broken", "failed", "boom"],
    ["second", "succeeded", undefined],
  ]);
  expect(done).toEqual([2]);
  expect(outcomes[1]?.retryAt?.getTime()).toBeGreaterThan(Date.now());
  expect((await queue.jobs()).map(({ task_identifier, flags }) => [task_identifier, flags])).toEqual([
    ["broken", null],
    ["first", null],
  ]);
  expect(await queue.runDueJobs()).toEqual([]);
});

test("a moved clock makes jobs due, is what tasks see, and puts retries where they belong", async () => {
  const seen: Date[] = [];
  const queue = await openQueue({
    remind: () => void seen.push(new Date()),
    broken: boom,
  });
  const start = Date.now();
  await queue.addJob("remind", {}, { runAt: new Date(start + 86_400_000) });
  await queue.addJob("broken", {});
  expect(await queue.runDueJobs()).toHaveLength(1);
  queue.clock.advance({ days: 1, minutes: 1 });
  const outcomes = await queue.runDueJobs();
  expect(outcomes.map(({ job }) => job.task_identifier).sort()).toEqual(["broken", "remind"]);
  expect(seen[0]?.getTime()).toBeGreaterThan(start + 86_400_000);
  const retry = outcomes.find(({ status }) => status === "failed")!;
  expect(retry.job.attempts).toBe(2);
  expect(retry.retryAt!.getTime()).toBeGreaterThan(queue.clock.now().getTime());
  expect(await queue.runDueJobs()).toEqual([]);
  queue.clock.set(retry.retryAt!);
  queue.clock.advance({ seconds: 1 });
  expect(await queue.runDueJobs()).toMatchObject([{ job: { attempts: 3 } }]);
  await queue.addJob("remind", {});
  await queue.assertJobAdded("remind", { runAt: queue.clock.now() });
  queue.clock.reset();
  expect(Math.abs(Date.now() - start)).toBeLessThan(60_000);
});

test("dates stay dates while the clock is moved", async () => {
  const queue = await openQueue();
  const before = new Date();
  queue.clock.set(new Date("2031-05-06T07:08:09Z"));
  class OwnDate extends Date {}
  expect(new Date().toISOString()).toMatch(/^2031-05-06T07:08:/);
  expect(Date()).toContain("2031");
  expect(new OwnDate().getUTCFullYear()).toBe(2031);
  expect(new OwnDate()).toBeInstanceOf(OwnDate);
  expect(before).toBeInstanceOf(Date);
  expect(new Date(2020, 1, 1).getFullYear()).toBe(2020);
  expect(Date.UTC(2020, 0, 1)).toBe(1_577_836_800_000);
  await queue.drop();
  expect(new Date().getUTCFullYear()).not.toBe(2031);
  expect(() => queue.clock.set(new Date(Number.NaN))).toThrow("valid moment");
});

test("runJob runs one job whenever it is due, leaves the others alone, and gives its outcome", async () => {
  const seen: unknown[] = [];
  const queue = await openQueue({ note: (payload, { job }) => void seen.push(payload, job.flags), broken: boom });
  const later = await queue.addJob("note", { n: 1 }, { runAt: new Date("2100-01-01"), flags: ["own"] });
  await queue.addJob("note", { n: 2 });
  const broken = await queue.addJob("broken", {}, { maxAttempts: 1 });
  expect(await queue.runJob(later)).toMatchObject({ status: "succeeded", error: null, retryAt: null });
  expect(seen).toEqual([{ n: 1 }, { own: true }]);
  const outcome = await queue.runJob(broken.id);
  expect(outcome).toMatchObject({ status: "failed", error: { message: "boom" }, retryAt: null });
  expect((await queue.jobs()).map(({ payload, flags }) => [payload, flags])).toEqual([
    [{ n: 2 }, null],
    [{}, null],
  ]);
  await expect(queue.runJob(later)).rejects.toThrow(`There is no job ${later.id} to run; it may have run already.`);
  await expect(queue.runJob(broken)).rejects.toThrow("could not be run. Its attempts are used up (1 of 1)");
  const unknown = await queue.addJob("unknown", {});
  await expect(queue.runJob(unknown)).rejects.toThrow("is its task in the list?");
});

test("runJob takes a job of a named queue out of turn", async () => {
  const seen: unknown[] = [];
  const queue = await openQueue({ t: (payload) => void seen.push(payload) });
  await queue.addJob("t", 1, { queueName: "q" });
  const second = await queue.addJob("t", 2, { queueName: "q" });
  await queue.runJob(second);
  expect(seen).toEqual([2]);
});

test("a batch that fails in part keeps what is left, and jobs of a queue run one after the other", async () => {
  const mails = defineBatchTask<string>({
    identifier: "mails",
    queueName: "mail",
    run: (items) => items.map((item) => (item === "bad" ? { ok: false, error: "no" } : { ok: true })),
  });
  const queue = await openQueue([mails]);
  await queue.addJob(mails, ["good", "bad"]);
  await queue.addJob(mails, ["fine"]);
  const outcomes = await queue.runDueJobs({ concurrency: 4 });
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["failed", "succeeded"]);
  expect(await queue.jobs(mails)).toMatchObject([{ payload: ["bad"], queue_name: "mail" }]);
});

test("jobs that add themselves for ever are stopped and named", async () => {
  const queue = await openQueue({ echo: (_payload, helpers) => helpers.addJob("echo", {}) });
  await queue.addJob("echo", {});
  await expect(queue.runDueJobs({ maxJobs: 5 })).rejects.toThrow(
    "More than 5 jobs ran ('echo'): do they add themselves? If not, raise 'maxJobs'.",
  );
});

test("assertJobAdded finds a job by task, part of the payload, key and time", async () => {
  const mail = defineTask({
    identifier: "mail",
    payload: z.object({ to: z.string(), tags: z.array(z.string()) }),
    run() {},
  });
  const queue = await openQueue([mail]);
  const runAt = new Date(Date.now() + 3_600_000);
  await queue.addJob(mail, { to: "bob", tags: [] });
  const { id } = await queue.addJob(
    mail,
    { to: "ada", tags: ["a", "b"] },
    { jobKey: "k", runAt, queueName: "q", priority: 3, flags: ["x", "y"] },
  );
  expect((await queue.assertJobAdded(mail, { payload: { to: "ada" } })).id).toBe(id);
  await queue.assertJobAdded("mail", { payload: { to: expect.stringMatching(/^a/), tags: ["a", expect.any(String)] } });
  await queue.assertJobAdded(mail, {
    key: "k",
    queueName: "q",
    priority: 3,
    maxAttempts: 25,
    flags: ["y", "x"],
    runAt,
  });
  await queue.assertJobAdded(mail, {
    key: "k",
    runAt: { after: new Date(), before: new Date(Date.now() + 3_700_000) },
  });
  await queue.assertNoJobAdded(mail, { payload: { to: "zoe" } });
  await queue.assertNoJobAdded("other");
  await expect(queue.assertNoJobAdded(mail, { key: null })).rejects.toThrow("of 'mail' was added, with the payload");
  const missing = queue.assertJobAdded(mail, { payload: { to: "ada", tags: ["c"] }, runAt: new Date() });
  await expect(missing).rejects.toMatchObject({ name: "AssertionError", operator: "assertJobAdded" });
  await expect(missing).rejects.toThrow(
    /^No job of 'mail' as expected was added\. Those that wait are different:\n {2}job 1: payload\.to is 'bob', expected 'ada'\n {2}job 2: payload\.tags is \[ 'a', 'b' \], expected \[ 'c' \]$/,
  );
  await expect(queue.assertJobAdded(mail, { payload: { to: "ada" }, runAt: new Date() })).rejects.toThrow(
    /job 2: runAt is .*Z, expected .*Z/,
  );
  await expect(queue.assertJobAdded("male")).rejects.toThrow("There are only jobs of 'mail'.");
});

test("each queue has a schema of its own, which is gone afterwards; a schema that was named stays", async () => {
  const pool = testPool(connectionString());
  const schemas = async (names: string[]): Promise<number> =>
    (await pool.query("select from pg_namespace where nspname = any($1)", [names])).rowCount ?? 0;
  const [one, two] = [await openQueue(), await openQueue({}, { pgPool: pool, connectionString: undefined } as never)];
  await one.addJob("t", {});
  expect(await two.jobs()).toEqual([]);
  const named = await openQueue({}, { schema: one.schema });
  await named.assertJobAdded("t");
  await named.drop();
  expect(await schemas([one.schema, two.schema])).toBe(2);
  await Promise.all([one.drop(), one.drop(), two.drop()]);
  expect(await schemas([one.schema, two.schema])).toBe(0);
});

test("code under test reaches the queue through its options", async () => {
  const done: unknown[] = [];
  const { logger, lines } = rememberingLogger();
  const queue = await openQueue({ t: (payload) => void done.push(payload) }, { logger });
  const utils = await makeWorkerUtils(queue.options);
  await utils.addJob("t", { from: "the application" });
  await utils.release();
  await queue.runDueJobs();
  expect(done).toEqual([{ from: "the application" }]);
  expect(lines.filter(({ level }) => level === "warning" || level === "error")).toEqual([]);
});

test("hooks and forbidden flags of the user count", async () => {
  const ran: string[] = [];
  const queue = await openQueue(
    { t: () => undefined },
    { forbiddenFlags: async () => ["no"], hooks: { beforeJobRun: ({ job }) => void ran.push(job.id) } },
  );
  const { id } = await queue.addJob("t", {});
  await queue.addJob("t", {}, { flags: ["no"] });
  expect(await queue.runDueJobs()).toHaveLength(1);
  expect(ran).toEqual([id]);
});

test("without a database one is told how to get one", async () => {
  const { DATABASE_URL, PGDATABASE } = process.env;
  delete process.env.DATABASE_URL;
  delete process.env.PGDATABASE;
  onTestFinished(() => {
    Object.assign(process.env, { ...(DATABASE_URL && { DATABASE_URL }), ...(PGDATABASE && { PGDATABASE }) });
  });
  await expect(openTestQueue()).rejects.toThrow("set DATABASE_URL, or use what startTestDatabase() gives");
});
