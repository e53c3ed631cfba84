import { expect, test } from "vitest";
import { makeWorkerUtils, SnoozeError, UnrecoverableError } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

function readBalance(): never {
  throw new RangeError("no such account");
}

test("a failed attempt is kept with its stack, and 'last_error' stays the message; other outcomes have none", async () => {
  const db = await freshDatabase();
  const snoozed = new Set<string>();
  const { runner } = await startWorker(
    db,
    {
      charge: () => {
        try {
          readBalance();
        } catch (cause) {
          throw new TypeError("not charged", { cause });
        }
      },
      refuse: () => {
        throw new UnrecoverableError("never");
      },
      wait: (_payload, { job }) => {
        if (snoozed.has(job.id)) return;
        snoozed.add(job.id);
        throw new SnoozeError(new Date());
      },
      unkept: () => readBalance(),
    },
    { history: "full", taskOptions: { unkept: { history: "off" } } },
  );
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  const kept = async (task: string, attempts: number) => {
    const { id } = await runner.addJob(task, {}, { maxAttempts: 1 });
    return until(async () => {
      const history = await utils.getJobHistory(id);
      return history.length === attempts && history;
    });
  };
  const [failure] = await kept("charge", 1);
  const lines = failure!.stack!.split("\n");
  expect(lines[0]).toMatch(/^ {4}at .*stacks\.test\.ts:\d+:\d+\)?$/);
  const cause = lines.indexOf("  cause: RangeError: no such account");
  expect(lines[cause + 1]).toMatch(/^ {6}at readBalance \(.*stacks\.test\.ts:\d+:\d+\)$/);
  expect(failure!.error).toBe("not charged\n  cause: RangeError: no such account");
  const [dead] = await db.query<{ last_error: string }>("select last_error from graphile_worker._private_jobs");
  expect(dead!.last_error).toBe(failure!.error);

  expect(await kept("refuse", 1)).toMatchObject([
    { outcome: "permanentlyFailed", stack: expect.stringContaining("stacks.test.ts") },
  ]);
  expect(await kept("wait", 2)).toMatchObject([
    { outcome: "snoozed", stack: null },
    { outcome: "succeeded", stack: null },
  ]);
  const { id } = await runner.addJob("unkept", {}, { maxAttempts: 1 });
  await until(async () => (await db.job(id))?.last_error === "no such account");
  expect(await utils.getJobHistory(id)).toEqual([]);

  // Lists are bounded: they have the message alone.
  const { entries } = await utils.listHistory({ outcome: "permanentlyFailed" });
  expect(entries.map((entry) => "stack" in entry)).toEqual([false, false]);
  await utils.release();
});
