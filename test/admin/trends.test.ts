import { expect, test } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

test("trends give counts and percentiles by step, of all tasks or of one, and only as finely as times are kept", async () => {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  // Ten jobs that took up to 1 ms, and in the next minute ten of another task that took up to 1,024 ms.
  await db.query(`
    insert into graphile_worker._hathi_job_times (period, starts_at, task, waits, runs, succeeded, failed, permanently_failed)
    select 'minute', date_trunc('minute', now()) - interval '2 minutes', 'a', '{10}', '{10}', 9, 1, 0
    union all
    select 'minute', date_trunc('minute', now()) - interval '1 minute', 'b', array_fill(0, array[20]) || '{10}', array_fill(0, array[20]) || '{10}', 10, 0, 0
    union all
    select 'minute', date_trunc('minute', now()) - interval '1 minute', 'a', '{10}', '{10}', 10, 0, 0
    union all
    select 'hour', date_trunc('hour', now()) - interval '5 hours', 'a', '{7}', '{7}', 7, 0, 0`);
  const minutes = await utils.getJobTrends({ sinceMs: 600_000 });
  expect(minutes.points.map(({ succeeded, failed }) => [succeeded, failed])).toEqual([
    [9, 1],
    [20, 0],
  ]);
  expect(minutes.points[1]!.at.getTime() - minutes.points[0]!.at.getTime()).toBe(60_000);
  expect(minutes.points[1]!.run.p50).toBeLessThan(2);
  expect(minutes.points[1]!.run.p95).toBeGreaterThan(700);
  expect(minutes.tasks.map(({ task, attempts, failed }) => [task, attempts, failed])).toEqual([
    ["a", 10, 1],
    ["a", 10, 0],
    ["b", 10, 0],
  ]);
  const own = await utils.getJobTrends({ sinceMs: 600_000, task: "b" });
  expect(own.points.map(({ succeeded }) => succeeded)).toEqual([10]);

  const hours = await utils.getJobTrends({ sinceMs: 86_400_000, stepMs: 3_600_000 });
  expect(hours.points.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(36);
  expect(hours.points[0]!.succeeded).toBe(7);
  await expect(utils.getJobTrends({ stepMs: 1_000 })).rejects.toThrow(
    "'stepMs' must be a minute (60000) at least, got 1000.",
  );
});

test("figures count by task at a bounded cost, and name the job that is due longest", async () => {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  await utils.addJobs([
    { identifier: "a", payload: {}, runAt: new Date(Date.now() - 60_000) },
    { identifier: "a", payload: {}, runAt: new Date(Date.now() + 60_000) },
    { identifier: "b", payload: {}, queueName: "q" },
  ]);
  const figures = await utils.getJobFigures();
  expect(figures).toMatchObject({ isSampled: false, oldestWaiting: { task_identifier: "a" } });
  expect(figures.tasks).toEqual([
    expect.objectContaining({ task: "a", waiting: 1, scheduled: 1, running: 0, dead: 0, isCapped: false }),
    expect.objectContaining({ task: "b", waiting: 1, scheduled: 0 }),
  ]);
});
