import { expect, test } from "vitest";
import { CancelJobError, SnoozeError, TimeoutError, UnrecoverableError } from "../../src/index.ts";
import { openTestQueue } from "../../src/testing/index.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { obedientTask, stubbornTask } from "./kit.ts";

test("the testing kit drives snoozes, cancels, back-offs and giving up with its clock", async () => {
  const db = await freshDatabase();
  let snoozes = 0;
  await using queue = await openTestQueue({
    connectionString: db.url,
    taskList: {
      snooze: () => {
        if (snoozes++ < 2) throw new SnoozeError("1h");
      },
      cancel: () => {
        throw new CancelJobError("no need");
      },
      giveUp: () => {
        throw new UnrecoverableError("hopeless");
      },
      backOff: () => {
        throw new Error("again");
      },
    },
    taskOptions: { backOff: { backoff: { type: "fixed", delay: "2h" } } },
  });
  for (const task of ["snooze", "cancel", "giveUp", "backOff"]) await queue.addJob(task, {});
  const first = await queue.runDueJobs();
  expect(first.map(({ job, status }) => [job.task_identifier, status])).toEqual([
    ["snooze", "snoozed"],
    ["cancel", "cancelled"],
    ["giveUp", "failed"],
    ["backOff", "failed"],
  ]);
  expect(first.map(({ retryAt }) => retryAt !== null)).toEqual([true, false, false, true]);

  queue.clock.advance({ hours: 1, minutes: 1 });
  const second = await queue.runDueJobs();
  expect(second.map(({ job, status }) => [job.task_identifier, status])).toEqual([["snooze", "snoozed"]]);
  const restMs = second[0]!.retryAt!.getTime() - queue.clock.now().getTime();
  expect(restMs).toBeGreaterThan(50 * 60_000);
  expect(restMs).toBeLessThan(70 * 60_000);

  queue.clock.advance({ hours: 1, minutes: 1 });
  const third = await queue.runDueJobs();
  expect(third.map(({ job, status }) => [job.task_identifier, status]).toSorted()).toEqual([
    ["backOff", "failed"],
    ["snooze", "succeeded"],
  ]);
  const waiting = await queue.addJob("backOff", {});
  const { cancelled } = await queue.utils.cancelJobs([waiting.id]);
  expect(cancelled).toHaveLength(1);
});

test("the testing kit drives timeouts with its clock: first the signal, then an overrun", async () => {
  const db = await freshDatabase();
  const obedient = obedientTask();
  const stuck = stubbornTask();
  await using queue = await openTestQueue({
    connectionString: db.url,
    taskList: { obedient: obedient.task, stuck: stuck.task },
    taskOptions: {
      obedient: { timeout: "1h", abortGrace: "10m", backoff: { type: "fixed", delay: "24h" } },
      stuck: { timeout: "1h", abortGrace: "10m", backoff: { type: "fixed", delay: "2h" } },
    },
  });
  await queue.addJob("obedient", {});
  const first = queue.runDueJobs();
  const { abortSignal } = await obedient.begun(1);
  queue.clock.advance({ minutes: 59 });
  expect(abortSignal.aborted).toBe(false);
  queue.clock.advance({ minutes: 2 });
  expect(abortSignal.reason).toBeInstanceOf(TimeoutError);
  expect(await first).toMatchObject([{ status: "failed", error: { name: "TimeoutError" } }]);

  const { id } = await queue.addJob("stuck", {});
  const second = queue.runDueJobs();
  const stubborn = await stuck.begun(1);
  queue.clock.advance({ hours: 1, minutes: 1 });
  expect(stubborn.abortSignal.aborted).toBe(true);
  queue.clock.advance({ minutes: 10 });
  await until(async () => (await queue.utils.explainJob(id)).reasons.some(({ kind }) => kind === "overrunning"));
  stuck.release(0);
  const [overrun] = await second;
  expect(overrun).toMatchObject({ status: "failed", error: { name: "TimeoutError" } });
  const restMs = overrun!.retryAt!.getTime() - queue.clock.now().getTime();
  expect(restMs).toBeGreaterThan(110 * 60_000);
  expect(restMs).toBeLessThan(130 * 60_000);
});
