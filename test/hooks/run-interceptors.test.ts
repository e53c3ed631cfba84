import { expect, test } from "vitest";
import type { LifecycleHooks } from "../../src/hooks/contexts.ts";
import type { HookResult } from "../../src/hooks/results.ts";
import { runOnce } from "../../src/runner/run.ts";
import type { TaskList } from "../../src/task.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { until } from "../support/wait.ts";
import { recorder, startRunner } from "./kit.ts";

const database = sharedDatabase();

/** Adds one job, runs what is due, and gives what is left of it. */
async function runOne(hooks: LifecycleHooks, taskList: TaskList, payload = "{}"): ReturnType<TestDatabase["job"]> {
  const db = database();
  await db.query("delete from graphile_worker._private_jobs");
  const [job] = await db.query<{ id: string }>("select id from graphile_worker.add_job('t', $1::json)", [payload]);
  const options = { connectionString: db.url, logger: rememberingLogger().logger, noHandleSignals: true };
  await runOnce({ ...options, hooks }, taskList);
  return db.job(job!.id);
}

const boom = (): void => {
  throw new Error("boom");
};

test.each<[string, HookResult]>([
  ["nothing", undefined],
  ["'continue'", "continue"],
])("beforeJobRun that answers %s lets the job run", async (_, answer) => {
  const ran: unknown[] = [];
  const seen = recorder("jobStart", "jobComplete");
  const asked: unknown[] = [];
  const beforeJobRun: LifecycleHooks["beforeJobRun"] = (ctx) => {
    asked.push([ctx.payload, ctx.job.task_identifier, ctx.workerId === ctx.job.locked_by]);
    return answer;
  };
  const left = await runOne({ ...seen.hooks, beforeJobRun }, { t: (payload) => void ran.push(payload) }, '{"a":1}');
  expect(left).toBeUndefined();
  expect(ran).toEqual([{ a: 1 }]);
  expect(asked).toEqual([[{ a: 1 }, "t", true]]);
  expect(seen.names()).toEqual(["jobStart", "jobComplete"]);
});

test("beforeJobRun that skips makes the job done without a run", async () => {
  const seen = recorder("jobStart", "jobComplete");
  const left = await runOne({ ...seen.hooks, beforeJobRun: () => "skip" }, { t: boom });
  expect(left).toBeUndefined();
  expect(seen.names()).toEqual(["jobComplete"]);
});

test.each<[string, () => HookResult, string]>([
  ["fails with a text", () => ({ fail: "not today" }), "not today"],
  ["fails with an error", () => ({ fail: new RangeError("too far") }), "too far"],
  ["throws", boom, "boom"],
])("beforeJobRun that %s fails the job, to be tried again", async (_, beforeJobRun, message) => {
  const seen = recorder("jobStart", "jobFail");
  const left = await runOne({ ...seen.hooks, beforeJobRun }, { t: () => undefined });
  expect(left).toMatchObject({ last_error: message, attempts: 1, locked_by: null });
  expect(seen.names()).toEqual(["jobFail"]);
});

test("an answer that nobody understands fails the job and says what may be answered", async () => {
  const left = await runOne({ beforeJobRun: (() => "Skip") as never }, { t: () => undefined });
  expect(left?.last_error).toBe(
    `The hook 'beforeJobRun' answered 'Skip'; it may answer nothing, "continue", "skip" or { fail: "why" }.`,
  );
});

test("interceptors are asked one after the other, until one gives a final answer", async () => {
  const asked: number[] = [];
  const left = await runOne(
    {
      beforeJobRun: [
        async () => {
          await Promise.resolve();
          asked.push(1);
        },
        () => {
          asked.push(2);
          return { fail: "two" };
        },
        () => void asked.push(3),
      ],
    },
    { t: () => undefined },
  );
  expect(asked).toEqual([1, 2]);
  expect(left?.last_error).toBe("two");
});

test("afterJobRun is told how the run ended, and leaves it so if it says nothing", async () => {
  const ends: unknown[] = [];
  const hooks: LifecycleHooks = {
    afterJobRun: ({ result, durationMs }) => {
      ends.push([result.ok, result.ok ? null : result.error.message, durationMs >= 0]);
    },
  };
  expect(await runOne(hooks, { t: () => undefined })).toBeUndefined();
  expect(await runOne(hooks, { t: boom })).toMatchObject({ last_error: "boom" });
  expect(ends).toEqual([
    [true, null, true],
    [false, "boom", true],
  ]);
});

test("afterJobRun that skips makes a failed job done", async () => {
  const seen = recorder("jobComplete", "jobFail");
  expect(await runOne({ ...seen.hooks, afterJobRun: () => "skip" }, { t: boom })).toBeUndefined();
  expect(seen.names()).toEqual(["jobComplete"]);
});

test("afterJobRun that fails makes a job failed that went well", async () => {
  const left = await runOne({ afterJobRun: () => ({ fail: "the result was no good" }) }, { t: () => undefined });
  expect(left).toMatchObject({ last_error: "the result was no good", attempts: 1 });
});

test("afterJobRun that fails a batch leaves what the batch has left to do", async () => {
  const left = await runOne(
    { afterJobRun: () => ({ fail: "in other words" }) },
    { t: (items: number[]) => items.map((n) => (n > 1 ? Promise.reject(new Error("no")) : Promise.resolve())) },
    "[1, 2, 3]",
  );
  expect(left).toMatchObject({ last_error: "in other words", payload: [2, 3] });
});

test("a job that is returned while beforeJobRun ponders is not run", async () => {
  const db = await freshDatabase();
  const asked = deferred();
  const answer = deferred();
  let ran = 0;
  let after = 0;
  const runner = await startRunner(
    db,
    { t: () => void ran++ },
    {
      shutdownGracePeriod: 1,
      hooks: {
        beforeJobRun: async () => {
          asked.resolve();
          await answer.promise;
        },
        afterJobRun: () => void after++,
      },
    },
  );
  const job = await runner.addJob("t", {});
  await asked.promise;
  const stopped = runner.stop();
  await until(async () => (await db.job(job.id))?.locked_by === null);
  answer.resolve();
  await stopped;
  expect([ran, after]).toEqual([0, 0]);
  expect(await db.job(job.id)).toMatchObject({ attempts: 0, locked_by: null });
});
