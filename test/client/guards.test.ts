import { expect, onTestFinished, test } from "vitest";
import { defineTask, JobSpecError, makeWorkerUtils, type QueueUtils, quickAddJob, run } from "../../src/index.ts";
import { openTestQueue } from "../../src/testing/index.ts";
import { stubbornTask } from "../control/kit.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";

async function utilsOf(db: TestDatabase): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url });
  onTestFinished(() => utils.release());
  return utils;
}

test("a throttled add that is skipped returns the earlier job, also when that has ended", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const add = (n: number) => utils.addJob("hook", { n }, { throttle: { key: "k", period: "24h" }, priority: 3 });

  const first = await add(1);
  expect(first.skipped).toBeUndefined();
  expect(await add(2)).toEqual({ ...first, skipped: "throttle" });
  await utils.completeJobs([first.id]);
  const third = await add(3);
  expect(third).toMatchObject({ id: first.id, task_identifier: "hook", skipped: "throttle", payload: null });
  expect(third.created_at).toBeInstanceOf(Date);
  expect(await db.jobs()).toEqual([]);
  // Another key, another task, and another kind of guard have nothing to do with it.
  const others = await utils.addJobs([
    { identifier: "hook", payload: {}, throttle: { key: "other", period: 1_000 } },
    { identifier: "unhook", payload: {}, throttle: { key: "k", period: 1_000 } },
    { identifier: "hook", payload: {}, singleton: { key: "k" } },
  ]);
  expect(others.map(({ skipped }) => skipped)).toEqual([undefined, undefined, undefined]);
});

test("every way into the queue takes guards: one job, many, a task's helpers, a caller's transaction, a definition", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const greet = defineTask<{ name: string }>({
    identifier: "greet",
    singleton: ({ name }) => ({ key: name }),
    jobKey: ({ name }) => (name === "keyed" ? "keyed" : undefined),
    run: () => undefined,
  });
  const ada = await greet.add(utils, { name: "ada" });
  const seen: unknown[] = [];
  await utils.transaction(async (jobs) => void seen.push((await jobs.addJob(greet, { name: "ada" })).skipped));
  seen.push((await utils.addJob("greet", {}, { singleton: { key: "ada" } })).skipped);
  seen.push((await quickAddJob({ connectionString: db.url }, greet, { name: "ada" })).skipped);
  const many = await utils.addJobs([
    { identifier: "plain", payload: 1 },
    { identifier: greet, payload: { name: "ada" } },
    { identifier: "plain", payload: 2, jobKey: "p" },
    { identifier: "greet", payload: {}, singleton: { key: "grace" } },
  ]);
  expect(many.map((job) => [job.task_identifier, job.payload, job.key, job.skipped])).toEqual([
    ["plain", 1, null, undefined],
    ["greet", { name: "ada" }, null, "singleton"],
    ["plain", 2, "p", undefined],
    ["greet", {}, null, undefined],
  ]);
  expect(many[1]?.id).toBe(ada.id);
  // What the add says goes before what the definition says.
  seen.push((await greet.add(utils, { name: "ada" }, { throttle: { key: "ada", period: "1m" } })).skipped);
  expect((await greet.add(utils, { name: "ada" }, { jobKey: "own" })).key).toBe("own");

  const runner = await run({
    connectionString: db.url,
    noHandleSignals: true,
    taskList: {
      outer: async (_payload, helpers) => {
        seen.push((await helpers.addJob("inner", {}, { throttle: { key: "k", period: "1h" } })).skipped);
        seen.push((await helpers.addJob("inner", {}, { throttle: { key: "k", period: "1h" } })).skipped);
      },
    },
  });
  await runner.addJob("outer", {});
  await until(() => seen.length === 6, { what: "the task has added its jobs" });
  await runner.stop();
  expect(seen).toEqual(["singleton", "singleton", "singleton", undefined, undefined, "throttle"]);
});

test("an add that is rolled back leaves no guard behind", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const spec = { throttle: { key: "k", period: "1h" } };
  await expect(
    utils.transaction(async (jobs) => {
      await jobs.addJob("hook", {}, spec);
      throw new Error("changed my mind");
    }),
  ).rejects.toThrow("changed my mind");
  expect((await utils.addJob("hook", {}, spec)).skipped).toBeUndefined();
});

test("a singleton that replaces a running job starts when that has ended, and a cancelled one is told to stop", async () => {
  const db = await freshDatabase();
  const task = stubbornTask();
  const runner = await run({
    connectionString: db.url,
    concurrency: 5,
    noHandleSignals: true,
    taskList: { sync: task.task },
  });
  onTestFinished(() => runner.stop().catch(() => undefined));
  const add = (n: number, onConflict: "replace" | "cancelRunning") =>
    runner.addJob("sync", { n }, { singleton: { key: "k", onConflict } });

  const first = await add(1, "replace");
  await task.begun(1);
  await add(2, "replace");
  const third = await add(3, "cancelRunning");
  await until(() => task.started[0]!.abortSignal.aborted, { what: "the running job is told to stop" });
  // Another job passes by, so the worker has had every chance to start the third one.
  const other = await runner.addJob("sync", { n: 0 });
  await task.begun(2);
  expect(task.started[1]?.job.id).toBe(other.id);
  expect(await db.job(third.id)).toMatchObject({ payload: { n: 3 }, locked_at: null, revision: 1 });
  task.release(0);
  const { job } = await task.begun(3);
  expect([job.id, job.payload]).toEqual([third.id, { n: 3 }]);
  expect(await db.job(first.id)).toBeUndefined();
  task.release(1);
  task.release(2);
  await runner.stop();
});

test("the testing clock moves periods and delays", async () => {
  const db = await freshDatabase();
  const done: unknown[] = [];
  const queue = await openTestQueue({
    connectionString: db.url,
    schema: "graphile_worker",
    taskList: { save: (payload) => void done.push(payload) },
  });
  onTestFinished(() => queue.drop());
  const type = (text: string) =>
    queue.addJob("save", text, { debounce: { key: "draft", delay: "10m", maxWait: "15m" } });
  const ping = () => queue.addJob("save", "ping", { throttle: { key: "ping", period: "1h" } });

  await type("a");
  await ping();
  queue.clock.advance({ minutes: 8 });
  await type("ab");
  queue.clock.advance({ minutes: 6 });
  await type("abc");
  expect((await ping()).skipped).toBe("throttle");
  await queue.runDueJobs();
  expect(done).toEqual(["ping"]);
  queue.clock.advance({ minutes: 2 });
  await queue.runDueJobs();
  expect(done).toEqual(["ping", "abc"]);
  expect((await ping()).skipped).toBe("throttle");
  queue.clock.advance({ hours: 1 });
  expect((await ping()).skipped).toBeUndefined();
});

test("SQL has a function for each guard, which returns null for a skipped add", async () => {
  const db = await freshDatabase();
  const ask = async (call: string): Promise<unknown> => {
    const [row] = await db.query<{ id: string | null }>(`select id from graphile_worker.${call}`);
    return row?.id;
  };
  const first = await ask("add_throttled_job('hook', '{}', 'k', '1 day')");
  expect(first).not.toBeNull();
  expect(await ask("add_throttled_job('hook', '{}', 'k', '1 day')")).toBeNull();
  const draft = await ask("add_debounced_job('save', '1', 'k', delay => '1 hour', max_wait => '1 day')");
  expect(await ask("add_debounced_job('save', '2', 'k', delay => '1 hour', priority => 4)")).toBe(draft);
  expect(await db.job(String(draft))).toMatchObject({ payload: 2, priority: 4, revision: 1 });
  const sync = await ask("add_singleton_job('sync', '1', 'k')");
  expect(await ask("add_singleton_job('sync', '2', 'k')")).toBeNull();
  expect(await ask("add_singleton_job('sync', '3', 'k', on_conflict => 'replace')")).toBe(sync);

  const refused: [call: string, message: string][] = [
    ["add_throttled_job('t', '1', '', '1 day')", "The key of a throttle must have 1 to 512 characters, got 0."],
    ["add_throttled_job('t', '1', 'k', '0')", "The period of a throttle must be longer than zero, got 00:00:00."],
    ["add_debounced_job('t', '1', 'k', null)", "The delay of a debounce must be longer than zero, got null."],
    [
      "add_debounced_job('t', '1', 'k', '2 s', '1 s')",
      "max_wait (00:00:01) must not be shorter than delay (00:00:02).",
    ],
    ["add_singleton_job('t', '1', 'k', 'replcae')", "Invalid on_conflict 'replcae'."],
    ["add_singleton_job('t', '1', 'k', max_attempts => 0)", "Job maximum attempts must be at least 1, got 0."],
  ];
  for (const [call, message] of refused) await expect(ask(call)).rejects.toThrow(message);
});

test("what does not go together is refused with one sentence", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const throttle = { key: "k", period: "1s" };
  const debounce = { key: "k", delay: "5s" };
  const both = "cannot be combined: each says what happens if there is such a job already. Leave one of them out.";
  const refused: [spec: object, message: string][] = [
    [{ throttle, debounce }, `'debounce' and 'throttle' ${both}`],
    [{ throttle, jobKey: "k" }, `'throttle' and 'jobKey' ${both}`],
    [{ debounce, jobKeyMode: "unsafe_dedupe" }, `'debounce' and 'jobKeyMode' ${both}`],
    [{ singleton: { key: "k" }, jobKey: "k", cancelRunning: true }, `'singleton' and 'jobKey' ${both}`],
    [{ debounce, runAt: new Date() }, "'debounce' and 'runAt' cannot be combined: 'debounce.delay' says when"],
    [{ debounce: { key: "k", delay: "5s", maxWait: "1s" } }, "'debounce.maxWait' must not be shorter than 'debounce"],
    [{ debounce: { key: "", delay: "5s" } }, "'debounce.key' must be a string of 1 to 512 characters"],
    [{ throttle: { key: "k" } }, "'throttle.period' must be a number of milliseconds from 1 to"],
    [{ throttle: { key: "k", period: "soon" } }, "or a string such as '30s', got 'soon'."],
    [{ throttle: { key: "k", perod: 1 } }, "Unknown key 'perod' in 'throttle'. Did you mean 'period'?"],
    [{ throttle: "k" }, "'throttle' must be an object { key, period }, got 'k'."],
    [{ singleton: { key: "k", onConflict: "replce" } }, "must be 'skip', 'replace' or 'cancelRunning', got 'replce'."],
  ];
  for (const [spec, message] of refused) {
    await expect(utils.addJob("t", {}, spec)).rejects.toThrow(message);
    await expect(utils.addJobs([{ identifier: "t", payload: {}, ...spec }])).rejects.toThrow(JobSpecError);
  }
  const batch = utils.addBatchJob("t", [1], { throttle });
  await expect(batch).rejects.toThrow(JobSpecError);
  await expect(batch).rejects.toThrow("'throttle' cannot be used with 'addBatchJob', since items would be dropped.");
  expect(await db.jobs()).toEqual([]);
});

test("expired guards go in batches, and only those: a live job keeps its guard", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await utils.addJobs(
    Array.from({ length: 25 }, (_, n) => ({ identifier: "t", payload: {}, throttle: { key: `${n}`, period: 1 } })),
  );
  const [gone, live] = await utils.addJobs([
    { identifier: "t", payload: {}, singleton: { key: "gone" } },
    { identifier: "t", payload: {}, singleton: { key: "live" } },
    { identifier: "t", payload: {}, throttle: { key: "long", period: "1h" } },
  ]);
  await utils.completeJobs([gone!.id]);
  await db.query(
    "update graphile_worker._hathi_add_guards set expires_at = now() - interval '1 s' where kind = 'singleton'",
  );
  const tidy = async (most: number): Promise<unknown> =>
    (await db.query("select graphile_worker._hathi_tidy_guards($1) as seen", [most]))[0]?.seen;
  expect([await tidy(10), await tidy(10), await tidy(10)]).toEqual([10, 10, 7]);
  const left = await db.query("select key, job_id from graphile_worker._hathi_add_guards order by key");
  expect(left.map(({ key }) => key)).toEqual(["live", "long"]);
  expect((await utils.addJob("t", {}, { singleton: { key: "live" } })).id).toBe(live!.id);
  // Whatever is not due is not read.
  await db.query(
    `insert into graphile_worker._hathi_add_guards (task_identifier, kind, key, since, expires_at)
     select 't', 'throttle', 'later ' || n, now(), now() + interval '1 day' from generate_series(1, 20000) as n`,
  );
  await db.query("analyze graphile_worker._hathi_add_guards");
  const plan = await db.query<{ "QUERY PLAN": string }>(
    "explain select from graphile_worker._hathi_add_guards where expires_at <= now() order by expires_at limit 10",
  );
  expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toContain("_hathi_add_guards_by_expiry_idx");
});
