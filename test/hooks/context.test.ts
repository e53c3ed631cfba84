import { expect, expectTypeOf, test } from "vitest";
import {
  type HookContext,
  type HookName,
  type Job,
  type JobHelpers,
  type LifecycleHooks,
  makeHooks,
  type RunnerOptions,
  type Task,
  type TaskSpec,
} from "../../src/index.ts";
import { runOnce } from "../../src/runner/run.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

declare global {
  namespace GraphileWorker {
    interface Context {
      /** So that other tests may have a state of their own. */
      [name: string]: unknown;
      mailer?: { send(to: string): string };
    }
  }
}

test("a task is handed the application's own state, and an empty one if there is none", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t')");
  const options = { connectionString: db.url, logger: rememberingLogger().logger, noHandleSignals: true };
  const context = { mailer: { send: (to: string) => `sent to ${to}` } };
  const got: unknown[] = [];
  const t: Task = (_, helpers) => void got.push(helpers.context, helpers.context.mailer?.send("Ada"));
  await runOnce({ ...options, context }, { t });
  await db.query("select graphile_worker.add_job('t')");
  await runOnce(options, { t });
  expect(got).toEqual([context, "sent to Ada", {}, undefined]);
  expect(got[0]).toBe(context);
});

test("the state has the merged type wherever it is handed out", () => {
  expectTypeOf<JobHelpers["context"]>().toEqualTypeOf<GraphileWorker.Context>();
  expectTypeOf<JobHelpers["context"]["mailer"]>().toEqualTypeOf<{ send(to: string): string } | undefined>();
  expectTypeOf<HookContext<HookName>["context"]>().toEqualTypeOf<GraphileWorker.Context>();
  // @ts-expect-error: a mailer can send
  const wrong: RunnerOptions = { context: { mailer: {} } };
  void wrong;
});

test("hooks are typed by their names", () => {
  const hooks: LifecycleHooks = {
    jobComplete({ job, durationMs }) {
      expectTypeOf(job).toEqualTypeOf<Job>();
      expectTypeOf(durationMs).toEqualTypeOf<number>();
    },
    beforeJobSchedule: [
      ({ spec }) => {
        expectTypeOf(spec).toEqualTypeOf<TaskSpec>();
        return { spec: { priority: 1, queueName: undefined } };
      },
      async ({ payload }) => (payload === null ? "skip" : "continue"),
    ],
    jobRecovery: () => ({ reschedule: { runAt: new Date() } }),
  };
  makeHooks(hooks).on("afterJobRun", ({ result }) => (result.ok ? "continue" : { fail: result.error }));
  // @ts-expect-error: no such hook
  const unknown: LifecycleHooks = { onJobStart: () => undefined };
  // @ts-expect-error: no such answer
  const answer: LifecycleHooks = { beforeJobRun: () => "stop" };
  // @ts-expect-error: a priority is a number
  const change: LifecycleHooks = { beforeJobSchedule: () => ({ spec: { priority: "high" } }) };
  void [unknown, answer, change];
});
