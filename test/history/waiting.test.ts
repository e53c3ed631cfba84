import { expect, onTestFinished, test, vi } from "vitest";
import {
  CancelJobError,
  defineTask,
  JobFailedError,
  JobUnknownError,
  makeWorkerUtils,
  type QueueUtils,
  type WorkerUtilsOptions,
} from "../../src/index.ts";
import { monotonicMs } from "../../src/util/timers.ts";
import { countedPool } from "../support/counted-pool.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { rememberingLogger } from "../support/log.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

// Some tests wait for many things one after the other, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

async function utilsOn(db: TestDatabase, options: WorkerUtilsOptions = {}): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({
    ...(!options.pgPool && { connectionString: db.url }),
    logger: rememberingLogger().logger,
    ...options,
  });
  onTestFinished(() => utils.release());
  return utils;
}

const kept = { keepResult: true, backoff: () => 0 };
const echo = (payload: unknown): unknown => payload;

test("a job is waited for from before it runs until its result is there, and again when it is long gone", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const held = heldTask();
  const { runner } = await startWorker(
    db,
    { held: (payload, helpers) => held.task(payload, helpers).then(() => ({ got: payload })) },
    { taskOptions: { held: kept } },
  );
  const { id } = await runner.addJob("held", { n: 1 });
  const early = utils.waitForJob(id);
  await held.begun(1);
  const late = utils.waitForJob(`00${id}`);
  held.release(0);
  expect(await early).toEqual({ got: { n: 1 } });
  expect(await late).toEqual({ got: { n: 1 } });
  expect(await utils.waitForJob(Number(id))).toEqual({ got: { n: 1 } });
});

test("a failure rejects once no attempt is left, and a cancel at once, each with its reason", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  let runs = 0;
  await startWorker(
    db,
    {
      fails: () => Promise.reject(new TypeError(`no ${++runs}`)),
      flaky: () => (++runs < 5 ? Promise.reject(new Error("not yet")) : "at last"),
      gives: () => Promise.reject(new CancelJobError("not needed")),
    },
    { taskOptions: { fails: kept, flaky: kept, gives: kept } },
  );
  const failure = await utils.addJobAndWait("fails", {}, { maxAttempts: 3 }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(JobFailedError);
  expect(failure).toMatchObject({
    code: "JOB_FAILED",
    outcome: "permanentlyFailed",
    attempts: 3,
    reason: "no 3",
    taskIdentifier: "fails",
    message: expect.stringMatching(/^Job \d+ of task 'fails' failed permanently after 3 attempts: no 3$/),
  });
  expect(await utils.addJobAndWait("flaky", {})).toBe("at last");
  await expect(utils.addJobAndWait("gives", {})).rejects.toMatchObject({ outcome: "cancelled", reason: "not needed" });

  const waiting = await utils.addJob("elsewhere", {});
  const wait = utils.waitForJob(waiting.id);
  wait.catch(() => undefined);
  await utils.cancelJobs([waiting.id], { reason: "changed my mind" });
  await expect(wait).rejects.toThrow(`Job ${waiting.id} of task 'elsewhere' was cancelled: changed my mind`);
});

test("what cannot be known is said in one sentence", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  await expect(utils.waitForJob(4711)).rejects.toThrow(JobUnknownError);
  await expect(utils.waitForJob(4711)).rejects.toThrow(
    "Nothing is known of job 4711: it never existed, its transaction has not committed yet, or it is gone and how it ended was not kept " +
      "(waiting for a job needs 'keepResult' or 'history' for its task).",
  );
  const { id } = await utils.addJob("unkept", {});
  const wait = utils.waitForJob(id);
  wait.catch(() => undefined);
  // It was seen, and then it is gone.
  await until(async () => {
    const [row] = await db.query(
      "select 1 from pg_stat_activity where query like '%_hathi_watch_jobs%' and datname = current_database()",
    );
    return row;
  });
  const { completed } = await startWorker(db, { unkept: echo });
  await completed(1);
  await expect(wait).rejects.toThrow(
    `Job ${id} is gone, and how it ended was not kept: it was removed, or its task needs 'keepResult' or 'history' to be waited for.`,
  );
  await expect(utils.waitForJob("x")).rejects.toThrow("A job id must be a whole number");
  await expect(utils.waitForJob(1, { timeout: "soon" })).rejects.toThrow("'timeout' must be a number of milliseconds");
  await expect(utils.addJobAndWait("unkept", {}, { timeout: -1 })).rejects.toThrow("'timeout' must be");
  expect(await db.jobs()).toEqual([]);
});

test("a wait follows its job, whatever others do to it", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const held = heldTask();
  await startWorker(
    db,
    {
      echo,
      held: (payload, helpers) => held.task(payload, helpers).then(() => payload),
      fails: () => Promise.reject(new Error("no")),
    },
    { taskOptions: { echo: kept, held: kept, fails: kept }, concurrency: 5 },
  );
  const later = { runAt: new Date(Date.now() + 3_600_000) };
  const waiting = async (jobKey: string): Promise<{ wait: Promise<unknown> }> => {
    const wait = utils.addJobAndWait("echo", "first", { ...later, jobKey });
    wait.catch(() => undefined);
    await until(async () => (await db.query("select from graphile_worker.jobs where key = $1", [jobKey])).length === 1);
    return { wait };
  };
  const running = async (payload: string, jobKey: string): Promise<{ wait: Promise<unknown>; id: string }> => {
    const before = held.started.length;
    const wait = utils.addJobAndWait("held", payload, { jobKey });
    wait.catch(() => undefined);
    await held.begun(before + 1);
    return { wait, id: held.started[before]!.id };
  };

  // Replaced or left alone by a later add with its key: it is the same job.
  const replaced = await waiting("a");
  await utils.addJob("echo", "second", { jobKey: "a" });
  expect(await replaced.wait).toBe("second");
  const first = await waiting("b");
  const same = utils.addJobAndWait("echo", "second", { jobKey: "b", jobKeyMode: "unsafe_dedupe" });
  // Before the second add the job must not run; after it, nothing else would wake the worker.
  const added = "select from graphile_worker.jobs where key = 'b' and revision = 1";
  await until(async () => (await db.query(added)).length === 1);
  await db.query("update graphile_worker._private_jobs set run_at = now() where key = 'b'");
  await db.query(`select pg_notify('jobs:insert', '{"count":1}')`);
  expect(await Promise.all([first.wait, same])).toEqual(["first", "first"]);

  // Replaced, removed or cancelled while it runs: it is another job, and this one goes on to its end.
  const old = await running("old", "c");
  const young = await running("young", "c");
  const removed = await running("removed", "d");
  await db.query("select graphile_worker.remove_job('d')");
  const cancelled = await running("cancelled", "e");
  await utils.cancelJobs([cancelled.id]);
  held.releaseAll();
  const ends = [old, young, removed, cancelled].map(({ wait }) => wait);
  expect(await Promise.all(ends)).toEqual(["old", "young", "removed", "cancelled"]);

  // Left out for one that has ended already.
  const throttle = { key: "t", period: "1h" };
  expect(await utils.addJobAndWait("echo", "first", { throttle })).toBe("first");
  expect(await utils.addJobAndWait("echo", "second", { throttle })).toBe("first");

  // Failed for good, by itself or by hand; and another job with the key of one that has.
  await expect(utils.addJobAndWait("fails", {}, { jobKey: "f", maxAttempts: 1 })).rejects.toThrow("no");
  expect(await utils.addJobAndWait("echo", "again", { jobKey: "f" })).toBe("again");
  const { id: failed } = await utils.addJob("echo", {}, later);
  const failure = utils.waitForJob(failed);
  failure.catch(() => undefined);
  await utils.permanentlyFailJobs([failed], "enough");
  await expect(failure).rejects.toMatchObject({ outcome: "permanentlyFailed", reason: "enough" });

  // Its entry has expired.
  const { id: expired } = await utils.addJob("echo", 9);
  expect(await utils.waitForJob(expired)).toBe(9);
  await db.query("delete from graphile_worker._hathi_history_attempts where job_id = $1", [expired]);
  await expect(utils.waitForJob(expired)).rejects.toThrow(JobUnknownError);
});

test("whoever has waited for long enough, or changes its mind, leaves; the job goes on", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const { id } = await utils.addJob("held", {});
  await expect(utils.waitForJob(id, { timeout: 50 })).rejects.toThrow(
    `Job ${id} has not ended within 50 ms; it goes on.`,
  );
  const controller = new AbortController();
  const wait = utils.waitForJob(id, { signal: controller.signal });
  controller.abort(new Error("the user left"));
  await expect(wait).rejects.toThrow("the user left");
  await expect(utils.addJobAndWait("held", {}, { signal: controller.signal })).rejects.toThrow("the user left");
  expect(await db.jobs()).toHaveLength(1);
  const left = utils.waitForJob(id);
  left.catch(() => undefined);
  await utils.release();
  await expect(left).rejects.toThrow("The utilities were released");
  await expect(utils.waitForJob(id)).rejects.toThrow("The utilities were released");
});

test("with history but without keepResult, a wait ends with undefined; what a task returns is what JSON makes of it", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const results = {
    undefined: undefined,
    null: null,
    date: new Date(0),
    deep: { a: [1, undefined], f: () => 1 },
    text: "ü\u0000\ud800",
  };
  await startWorker(
    db,
    { plain: () => 7, odd: (name: keyof typeof results) => results[name] },
    { history: "outcomes", taskOptions: { odd: kept } },
  );
  expect(await utils.addJobAndWait("plain", {})).toBeUndefined();
  expect(await utils.addJobAndWait("odd", "undefined")).toBeNull();
  expect(await utils.addJobAndWait("odd", "null")).toBeNull();
  expect(await utils.addJobAndWait("odd", "date")).toBe("1970-01-01T00:00:00.000Z");
  expect(await utils.addJobAndWait("odd", "deep")).toEqual({ a: [1, null] });
  expect(await utils.addJobAndWait("odd", "text")).toBe(results.text);
});

test.each([
  ["a BigInt", () => ({ n: 1n }), /cannot be kept, since it is no JSON/],
  [
    "a circle",
    () => {
      const a: { a?: unknown } = {};
      a.a = a;
      return a;
    },
    /cannot be kept, since it is no JSON/,
  ],
  ["a function", () => () => 1, /cannot be kept: it is a function/],
  ["10 MB", () => "x".repeat(10_000_000), /takes 10000002 bytes, and at most 1048576 are kept/],
  [
    "a trap",
    () => ({
      get a() {
        throw new Error("trapped");
      },
    }),
    /cannot be kept, since it is no JSON: trapped/,
  ],
])("a result that is %s rejects the wait with the reason", async (_name, task, message) => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  await startWorker(db, { task }, { taskOptions: { task: kept } });
  await expect(utils.addJobAndWait("task", {})).rejects.toMatchObject({
    outcome: "permanentlyFailed",
    attempts: 25,
    reason: expect.stringMatching(message),
  });
});

test("definitions check payloads and keep their results", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const sum = defineTask({
    identifier: "sum",
    keepResult: true,
    run: ({ a, b }: { a: number; b: number }) => ({ sum: a + b, at: new Date(0) }),
  });
  await startWorker(db, { sum });
  const { sum: three, at } = await utils.addJobAndWait(sum, { a: 1, b: 2 }, { priority: 3 });
  expect([three, at]).toEqual([3, "1970-01-01T00:00:00.000Z"]);
});

test("a thousand waiters share one connection and a few statements, and each gets its own result", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url, 4);
  const utils = await utilsOn(db, { pgPool: pool });
  const ids = (
    await utils.addJobs(Array.from({ length: 1_000 }, (_, n) => ({ identifier: "echo", payload: { n } })))
  ).map(({ id }) => id);
  const since = monotonicMs();
  sent.length = 0;
  const waits = Promise.all(ids.map((id) => utils.waitForJob(id)));
  await until(() => sent.some((text) => text.includes("LISTEN")));
  await startWorker(db, { echo }, { taskOptions: { echo: kept }, concurrency: 20 });
  expect(await waits).toEqual(ids.map((_, n) => ({ n })));
  const seconds = (monotonicMs() - since) / 1000;
  const questions = sent.filter((text) => text.includes("_hathi_watch_jobs"));
  expect(sent.filter((text) => text.includes('LISTEN "hathi:ended"'))).toHaveLength(1);
  // At most forty a second, which a slow machine has in the time it takes; a busy one has fewer.
  expect(questions.length).toBeLessThanOrEqual(5 + seconds * 40);
  expect(questions.length).toBeLessThan(300);
  expect(sent.length - questions.length).toBeLessThan(20);
});

test("a large result is waited for in turns, not in one response", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url, 4);
  const utils = await utilsOn(db, { pgPool: pool });
  const dieOf = dice(1);
  const text = Array.from({ length: 120_000 }, () => dieOf().toString(36).slice(2, 10))
    .join("")
    .slice(0, 900_000);
  const { runner, completed } = await startWorker(
    db,
    { big: (n: number) => n + text },
    { taskOptions: { big: kept }, concurrency: 4 },
  );
  const jobs = await runner.addJobs(Array.from({ length: 20 }, (_, n) => ({ identifier: "big", payload: n })));
  await completed(20);
  sent.length = 0;
  const results = (await Promise.all(jobs.map(({ id }) => utils.waitForJob(id)))) as string[];
  expect(results.map((result) => result.slice(0, -text.length))).toEqual(jobs.map((_, n) => String(n)));
  expect(sent.filter((statement) => statement.includes("_hathi_watch_jobs")).length).toBeGreaterThan(1);
});

test.each([
  ["with LISTEN", {}],
  ["without LISTEN", { useNotifications: false }],
  ["with a pool of one connection", { maxPoolSize: 1 }],
])("no end is missed, whenever the wait begins, %s", async (_name, options) => {
  const db = await freshDatabase();
  const utils = await utilsOn(db, options);
  await startWorker(
    db,
    { echo, fails: () => Promise.reject(new Error("no")) },
    { taskOptions: { echo: kept, fails: kept }, concurrency: 5 },
  );
  const roll = dice(19);
  const rest = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
  const waits = Array.from({ length: 150 }, async (_, n) => {
    await rest(roll() * 400);
    const isGood = roll() < 0.7;
    const job = await utils.addJob(isGood ? "echo" : "fails", { n }, { maxAttempts: 1 });
    await rest(roll() < 0.5 ? 0 : roll() * 30);
    const end = await utils.waitForJob(job.id).catch((error: unknown) => error);
    if (isGood) expect(end).toEqual({ n });
    else expect(end).toMatchObject({ jobId: job.id, reason: "no" });
  });
  await Promise.all(waits);
});

test("cut connections, a network that is gone for a while and terminated backends delay a wait, and lose none", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const { logger, lines } = rememberingLogger();
  const utils = await utilsOn(db, { connectionString: proxy.url, logger });
  const held = heldTask();
  await startWorker(
    db,
    { held: (payload, helpers) => held.task(payload, helpers).then(() => payload) },
    { taskOptions: { held: kept }, concurrency: 60 },
  );
  const ids = (await utils.addJobs(Array.from({ length: 60 }, (_, n) => ({ identifier: "held", payload: n })))).map(
    ({ id }) => id,
  );
  await held.begun(60);
  const indexOf = (id: string): number => held.started.findIndex((job) => job.id === id);
  const waits = Promise.all(ids.map((id) => utils.waitForJob(id)));
  const listening = (): Promise<unknown> =>
    until(async () => {
      const rows = await db.query(
        "select 1 from pg_stat_activity where query like 'LISTEN \"hathi:ended\"%' and datname = current_database()",
      );
      return rows.length > 0;
    });
  await listening();
  for (const [round, id] of ids.slice(0, 50).entries()) {
    if (round === 10) proxy.cut();
    if (round === 20) proxy.sever();
    if (round === 30) proxy.restore();
    if (round % 5 === 0) {
      await db.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%_hathi_watch_jobs%' and pid <> pg_backend_pid() and datname = current_database()",
      );
    }
    held.release(indexOf(id));
    await new Promise((resolve) => void setTimeout(resolve, 10));
  }
  await listening();
  held.releaseAll();
  expect(await waits).toEqual(ids.map((_, n) => n));
  // However many parts noticed it and however often, one line for each outage.
  expect(lines.filter(({ level }) => level === "error").length).toBeLessThan(30);
});

test("connections that die without a word delay a wait by seconds, and notifications that were lost with them do no harm", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const utils = await utilsOn(db, { connectionString: proxy.url });
  const held = heldTask();
  await startWorker(
    db,
    { held: (payload, helpers) => held.task(payload, helpers).then(() => payload) },
    { taskOptions: { held: kept } },
  );
  const { id } = await utils.addJob("held", 7);
  const wait = utils.waitForJob(id);
  await held.begun(1);
  await until(() => proxy.connections() >= 2, { what: "it listens on one connection and asks on another" });
  proxy.blackholeOpen();
  held.release(0);
  expect(await wait).toBe(7);
});

test.skipIf(!hasPgBouncer)("behind a pooler in transaction mode ends are found by polling", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db, { connectionString: await startPgBouncer(db.url) });
  await startWorker(db, { echo }, { taskOptions: { echo: kept } });
  expect(await Promise.all([1, 2, 3].map((n) => utils.addJobAndWait("echo", n)))).toEqual([1, 2, 3]);
});

test("whoever no longer waits lets the connection go", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  await startWorker(db, { echo }, { taskOptions: { echo: kept } });
  await utils.addJobAndWait("echo", 1);
  await until(async () => {
    const rows = await db.query(
      "select 1 from pg_stat_activity where query like 'LISTEN \"hathi:ended\"%' and datname = current_database()",
    );
    return rows.length === 0;
  });
  expect(await utils.addJobAndWait("echo", 2)).toBe(2);
});
