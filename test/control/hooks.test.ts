import { expect, test } from "vitest";
import { CancelJobError, SnoozeError } from "../../src/job-errors.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { obedientTask, stubbornTask, utilsOf } from "./kit.ts";

test("lifecycle hooks are told of cancels, snoozes, timeouts and overruns, with what they are documented to get", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const obedient = obedientTask();
  const stuck = stubbornTask();
  const told: { hook: string; context: Record<string, unknown> & { job: { task_identifier: string } } }[] = [];
  const hear = (hook: string) => (context: unknown) => void told.push({ hook, context } as (typeof told)[number]);
  const worker = await startWorker(
    db,
    {
      obedient: obedient.task,
      stuck: stuck.task,
      snoozes: () => {
        throw new SnoozeError("1h");
      },
      cancels: () => {
        throw new CancelJobError("no need");
      },
      late: (_payload, { abortPromise }) => abortPromise,
    },
    {
      concurrency: 5,
      taskOptions: { stuck: { timeout: 50, abortGrace: 50 }, late: { timeout: 40, abortGrace: "1h" } },
      hooks: {
        jobCancel: hear("jobCancel"),
        jobSnooze: hear("jobSnooze"),
        jobTimeout: hear("jobTimeout"),
        jobOverrun: hear("jobOverrun"),
        jobFail: hear("jobFail"),
      },
    },
  );
  const running = await utils.addJob("obedient", {});
  await obedient.begun(1);
  for (const task of ["stuck", "snoozes", "cancels", "late"]) await utils.addJob(task, {});
  await utils.cancelJobs([running.id], { reason: "enough" });
  await worker.completed(5);
  await until(() => told.length >= 8, { what: "every hook was called" });

  const workerId = worker.pool().id;
  const find = (hook: string, task: string) =>
    told.find((each) => each.hook === hook && each.context.job.task_identifier === task)?.context;
  const durationMs = expect.any(Number);
  expect(find("jobCancel", "obedient")).toMatchObject({ workerId, durationMs, error: { cancelReason: "enough" } });
  expect(find("jobCancel", "cancels")).toMatchObject({ workerId, durationMs, error: { message: "no need" } });
  expect(find("jobSnooze", "snoozes")).toMatchObject({ workerId, durationMs, runAt: expect.any(Date) });
  expect(find("jobTimeout", "late")).toMatchObject({ workerId, timeoutMs: 40 });
  expect(find("jobTimeout", "stuck")).toMatchObject({ workerId, timeoutMs: 50 });
  expect(find("jobOverrun", "stuck")).toMatchObject({ workerId, timeoutMs: 50, durationMs });
  expect(find("jobFail", "stuck")).toMatchObject({ error: { name: "TimeoutError" } });
  expect(find("jobFail", "late")).toMatchObject({ error: { name: "TimeoutError" } });
  expect(told).toHaveLength(8);
});
