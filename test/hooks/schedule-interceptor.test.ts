import { expect, test } from "vitest";
import { HookError, JobSkippedError } from "../../src/errors.ts";
import type { HookContext, LifecycleHooks } from "../../src/hooks/contexts.ts";
import type { JobScheduleResult } from "../../src/hooks/results.ts";
import { addJobAdhoc } from "../../src/runner/add-job-adhoc.ts";
import { runOnce } from "../../src/runner/run.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { openUtils, recorder, startRunner } from "./kit.ts";

type Ask = (ctx: HookContext<"beforeJobSchedule">) => JobScheduleResult;

const mark: Ask = ({ payload, spec }) => ({
  payload: { given: payload },
  spec: { priority: (spec.priority ?? 0) + 7, flags: ["marked"] },
});

test("every way in passes the hook, which may change payload and spec", async () => {
  const db = await freshDatabase();
  const hooks: LifecycleHooks = { beforeJobSchedule: mark };
  const utils = await openUtils(db, hooks);
  await utils.addJob("utils", 1, { priority: 1, maxAttempts: 3 });
  await utils.addJobs([{ identifier: "many", payload: 2, priority: 1, maxAttempts: 3 }]);
  await utils.addBatchJob("batch", [3], { priority: 1, maxAttempts: 3 });
  const client = await db.pool.connect();
  await client.query("begin");
  await utils.withTransaction(client).addJob("tx", 4, { priority: 1, maxAttempts: 3 });
  await utils.withTransaction(client).addJobs([{ identifier: "txs", payload: 5, priority: 1, maxAttempts: 3 }]);
  await utils.withTransaction(client).addBatchJob("txBatch", [6], { priority: 1, maxAttempts: 3 });
  await client.query("commit");
  client.release();
  const options = { connectionString: db.url, hooks, logger: rememberingLogger().logger, noHandleSignals: true };
  await addJobAdhoc({ connectionString: db.url, hooks }, "adhoc", 7, { priority: 1, maxAttempts: 3 });
  const runner = await startRunner(db, { elsewhere: () => undefined }, { hooks });
  await runner.addJob("runner", 8, { priority: 1, maxAttempts: 3 });
  await runner.addJobs([{ identifier: "runners", payload: 9, priority: 1, maxAttempts: 3 }]);
  await runner.stop();
  await db.query("select graphile_worker.add_job('parent')");
  await runOnce(options, {
    parent: async (_, { addJob, addJobs }) => {
      await addJob("child", 10, { priority: 1, maxAttempts: 3 });
      await addJobs([{ identifier: "children", payload: 11, priority: 1, maxAttempts: 3 }]);
    },
  });

  const jobs = await db.jobs();
  expect(jobs.map(({ task_identifier, payload }) => [task_identifier, payload])).toEqual([
    ["utils", { given: 1 }],
    ["many", { given: 2 }],
    ["batch", { given: [3] }],
    ["tx", { given: 4 }],
    ["txs", { given: 5 }],
    ["txBatch", { given: [6] }],
    ["adhoc", { given: 7 }],
    ["runner", { given: 8 }],
    ["runners", { given: 9 }],
    ["child", { given: 10 }],
    ["children", { given: 11 }],
  ]);
  for (const job of jobs) expect(job).toMatchObject({ priority: 8, max_attempts: 3, flags: { marked: true } });
});

test("each hook sees what those before it changed, and what none names stays", async () => {
  const db = await freshDatabase();
  const seen: unknown[] = [];
  const utils = await openUtils(db, {
    beforeJobSchedule: [
      () => ({ payload: "one" }),
      () => "continue",
      ({ payload }) => ({ spec: { queueName: `queue ${String(payload)}`, jobKey: undefined } }),
      ({ identifier, payload, spec }) => void seen.push({ identifier, payload, spec }),
    ],
  });
  const job = await utils.addJob("t", "zero", { priority: 3, jobKey: "k" });
  expect(seen).toEqual([
    { identifier: "t", payload: "one", spec: { priority: 3, queueName: "queue one", jobKey: undefined } },
  ]);
  expect(await db.job(job.id)).toMatchObject({ payload: "one", priority: 3, queue_name: "queue one", key: null });
});

test("a job that is skipped is not added, and its caller is told so", async () => {
  const db = await freshDatabase();
  const utils = await openUtils(db, { beforeJobSchedule: ({ payload }) => (payload === 2 ? "skip" : undefined) });
  const skipped = utils.addJob("t", 2);
  await expect(skipped).rejects.toThrow(JobSkippedError);
  await expect(skipped).rejects.toMatchObject({ code: "JOB_SKIPPED", identifier: "t" });
  expect(await db.jobs()).toEqual([]);
});

test("of many, only those that are skipped are left out", async () => {
  const db = await freshDatabase();
  const utils = await openUtils(db, { beforeJobSchedule: ({ payload }) => (payload === 2 ? "skip" : undefined) });
  const added = await utils.addJobs([1, 2, 3].map((payload) => ({ identifier: "t", payload })));
  expect(added.map(({ payload }) => payload)).toEqual([1, 3]);
  expect(await utils.addJobs([{ identifier: "t", payload: 2 }])).toEqual([]);
  expect((await db.jobs()).map(({ payload }) => payload)).toEqual([1, 3]);
});

test("a job that is refused is not added, and takes those of its call with it", async () => {
  const db = await freshDatabase();
  const utils = await openUtils(db, {
    beforeJobSchedule: ({ payload }) => {
      if (payload === "throw") throw new RangeError("thrown");
      return payload === "fail" ? { fail: "refused" } : undefined;
    },
  });
  await expect(utils.addJob("t", "fail")).rejects.toThrow(new HookError("refused"));
  await expect(utils.addJob("t", "throw")).rejects.toThrow(new RangeError("thrown"));
  const many = ["fine", "fail"].map((payload) => ({ identifier: "t", payload }));
  await expect(utils.addJobs(many)).rejects.toThrow(new HookError("refused"));
  expect(await db.jobs()).toEqual([]);
});

test("what is wrong before or after the hook is refused as ever", async () => {
  const db = await freshDatabase();
  const utils = await openUtils(db, { beforeJobSchedule: () => ({ spec: { priority: 1e9 } }) });
  await expect(utils.addJob("t", {})).rejects.toThrow("'priority' must be a whole number");
  await expect(utils.addJobs([null] as never)).rejects.toThrow("it must be an object, got null");
  await expect(utils.addJobs("t" as never)).rejects.toThrow("takes an array of jobs");
  const confused = await openUtils(db, { beforeJobSchedule: (() => ({ payloads: 1 })) as never });
  await expect(confused.addJob("t", {})).rejects.toThrow("or a change { payload, spec }");
});

test("recurring jobs pass the hook too: changed, skipped, or lost with a word in the log", async () => {
  const db = await freshDatabase();
  const { logger, lines } = rememberingLogger();
  const seen = recorder("cronTick", "cronJobScheduled");
  const later = new Date("2099-01-01T00:00:00Z");
  const runner = await startRunner(
    db,
    { elsewhere: () => undefined },
    {
      logger,
      cron: ["changed", "skipped", "failed"].map((task) => ({ task, match: "* * * * *", options: { seconds: "*" } })),
      hooks: {
        ...seen.hooks,
        beforeJobSchedule: ({ identifier, payload, spec }) => {
          if (identifier === "skipped") return "skip";
          if (identifier === "failed") return { fail: "not this one" };
          return { payload: { was: payload, at: spec.runAt }, spec: { runAt: later, priority: 5, queueName: "q" } };
        },
      },
    },
  );
  const { job, jobId, identifier, scheduledAt } = await seen.first("cronJobScheduled");
  await until(() => seen.of("cronTick").find(({ identifiers }) => identifiers.length === 3));
  await until(() => lines.find(({ message }) => message.includes("Could not schedule failed: not this one")));
  await runner.stop();
  expect(await db.job(jobId)).toMatchObject({
    task_identifier: "changed",
    payload: { was: { _cron: { ts: scheduledAt.toISOString() } }, at: scheduledAt.toISOString() },
    run_at: later,
    priority: 5,
    queue_name: "q",
  });
  expect([identifier, job.task, job.priority]).toEqual(["changed", "changed", 5]);
  expect(new Set((await db.jobs()).map((row) => row.task_identifier))).toEqual(new Set(["changed"]));
  expect(new Set(seen.of("cronJobScheduled").map((call) => call.identifier))).toEqual(new Set(["changed"]));
});

test("of all processes only the one that added a recurring job is told of it", async () => {
  const db = await freshDatabase();
  const [one, other] = [recorder("cronTick", "cronJobScheduled"), recorder("cronTick", "cronJobScheduled")];
  const cron = [{ task: "recurring", match: "* * * * *", options: { seconds: "*" } }];
  const runners = [
    await startRunner(db, { elsewhere: () => undefined }, { cron, hooks: one.hooks }),
    await startRunner(db, { elsewhere: () => undefined }, { cron, hooks: other.hooks }),
  ];
  await until(() => one.of("cronTick").length >= 2 && other.of("cronTick").length >= 2);
  await Promise.all(runners.map((runner) => runner.stop()));
  const told = [...one.of("cronJobScheduled"), ...other.of("cronJobScheduled")].map(({ jobId }) => jobId);
  expect(told.toSorted()).toEqual((await db.jobs()).map(({ id }) => id).toSorted());
});
