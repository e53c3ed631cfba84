import { expect, test } from "vitest";
import { CancelJobError, SnoozeError, UnrecoverableError } from "../../src/job-errors.ts";
import type { TaskRunOptions } from "../../src/task-options.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { cancellationOf, utilsOf } from "./kit.ts";

/** Runs one job whose task throws, once, and gives what is left of it. */
async function runThrowing(db: TestDatabase, thrown: unknown, options: TaskRunOptions = {}) {
  const utils = await utilsOf(db);
  const task = (): never => {
    throw thrown;
  };
  const worker = await startWorker(db, { t: task }, { taskOptions: { t: options } });
  const before = new Date();
  const { id } = await utils.addJob("t", {});
  await worker.completed(1);
  return { id, before, worker, utils, row: await db.job(id) };
}

test("SnoozeError puts a job off without using its attempt", async () => {
  const db = await freshDatabase();
  const { id, before, worker, row } = await runThrowing(db, new SnoozeError("5m"));
  expect(row).toMatchObject({ attempts: 0, locked_at: null, locked_by: null, last_error: null });
  const restMs = row!.run_at.getTime() - before.getTime();
  expect(restMs).toBeGreaterThan(4.9 * 60_000);
  expect(restMs).toBeLessThan(7 * 60_000);
  expect(worker.of("job:snoozed").map(({ job }) => job.id)).toEqual([id]);
  expect(worker.of("job:error")).toEqual([]);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "snoozed" });
  expect(await db.query("select snoozes from graphile_worker._hathi_job_snoozes where job_id = $1", [id])).toEqual([
    { snoozes: 1 },
  ]);
});

test("SnoozeError takes a date", async () => {
  const db = await freshDatabase();
  const until = new Date(Date.now() + 3_600_000);
  const { row } = await runThrowing(db, new SnoozeError(until));
  expect(row!.run_at).toEqual(until);
});

test.each([
  ["long before any timestamp", new Date(-8.64e15), -366],
  ["in the year 0", new Date("0000-01-01"), -366],
  ["a day ago", new Date(Date.now() - 86_400_000), -1],
  ["beyond any timestamp", new Date(8.64e15), 366],
  ["in more milliseconds than a timestamp has", 1e300, 366],
])("a snooze until %s counts as at most a year, and nothing else suffers", async (_name, when, days) => {
  const db = await freshDatabase();
  const { worker, utils, row, before } = await runThrowing(db, new SnoozeError(when));
  if (days > 0) expect((row!.run_at.getTime() - before.getTime()) / 86_400_000).toBeCloseTo(days, 1);
  const other = await utils.addJob("t", {});
  await until(() => worker.of("job:complete").some(({ job }) => job.id === other.id), { what: "others are settled" });
  expect(worker.of("pool:fatalError")).toEqual([]);
});

test("a job that was snoozed as often as it may be counts as failed, and everything says so", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const snooze = (): never => {
    throw new SnoozeError(1);
  };
  const hooks: string[] = [];
  const worker = await startWorker(
    db,
    { t: snooze },
    {
      taskOptions: { t: { maxSnoozes: 3 } },
      pollInterval: 50,
      hooks: { jobSnooze: () => void hooks.push("snooze"), jobFail: () => void hooks.push("fail") },
    },
  );
  const { id } = await utils.addJob("t", {});
  const failure = await worker.nth("job:error");
  await worker.completed(4);
  expect(failure.error).toBeInstanceOf(SnoozeError);
  expect(await db.job(id)).toMatchObject({ attempts: 1, last_error: expect.stringMatching(/Snoozed for/) });
  expect(await db.query("select snoozes from graphile_worker._hathi_job_snoozes")).toEqual([{ snoozes: 3 }]);
  expect(worker.of("job:snoozed")).toHaveLength(3);
  expect(worker.of("job:failed")).toEqual([]);
  expect(worker.of("job:complete").map(({ outcome }) => outcome)).toEqual(["snoozed", "snoozed", "snoozed", "failed"]);
  await until(() => hooks.length === 4);
  expect(hooks).toEqual(["snooze", "snooze", "snooze", "fail"]);
  const said = worker.lines.map(({ message }) => message);
  expect(said.filter((line) => line.startsWith("Snoozed task"))).toHaveLength(3);
  expect(said.filter((line) => line.startsWith("Failed task"))).toHaveLength(1);
});

test("a snooze beyond the last allowed one fails permanently on the last attempt", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const snooze = (): never => {
    throw new SnoozeError("1h");
  };
  const worker = await startWorker(db, { t: snooze }, { taskOptions: { t: { maxSnoozes: 0 } } });
  const { id } = await utils.addJob("t", {}, { maxAttempts: 1 });
  await worker.completed(1);
  expect(await db.job(id)).toMatchObject({ attempts: 1, max_attempts: 1, locked_at: null });
  expect(worker.of("job:failed")).toHaveLength(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "permanentlyFailed" });
});

test.each(["nonsense", -1, Number.NaN, new Date("never"), undefined])("SnoozeError refuses %s", (when) => {
  expect(() => new SnoozeError(when as never)).toThrow(/SnoozeError takes milliseconds/);
});

test("UnrecoverableError fails a job permanently at once", async () => {
  const db = await freshDatabase();
  const { worker, row } = await runThrowing(db, new UnrecoverableError("no such customer"));
  expect(row).toMatchObject({ attempts: 25, max_attempts: 25, locked_at: null, last_error: "no such customer" });
  expect(worker.of("job:failed")).toHaveLength(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "permanentlyFailed" });
});

test("CancelJobError cancels the job", async () => {
  const db = await freshDatabase();
  const { id, worker, row } = await runThrowing(db, new CancelJobError("nothing to do"));
  expect(row).toBeUndefined();
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
  expect(worker.of("job:error")).toEqual([]);
  expect(await cancellationOf(db, id)).toMatchObject({ reason: "nothing to do", outcome: "cancelled" });
});

test("an error that another copy of the library made decides, too", async () => {
  const db = await freshDatabase();
  const foreign = Object.assign(new Error("later"), { name: "SnoozeError", code: "SNOOZE", delayMs: 60_000 });
  const { row } = await runThrowing(db, foreign);
  expect(row).toMatchObject({ attempts: 0, locked_at: null });
});

test.each([
  ["fixed", { type: "fixed", delay: "1h" }, 3_600_000],
  ["capped", { type: "exponential", delay: "1h", maxDelay: "10m" }, 600_000],
  ["a function", (attempt: number, error: Error) => (error.message === "boom" ? attempt * 7_200_000 : 0), 7_200_000],
] as const)("a back-off of its own: %s", async (_name, backoff, expectedMs) => {
  const db = await freshDatabase();
  const { before, row } = await runThrowing(db, new Error("boom"), { backoff });
  expect(row).toMatchObject({ attempts: 1, last_error: "boom", locked_at: null });
  const restMs = row!.run_at.getTime() - before.getTime();
  expect(restMs).toBeGreaterThan(expectedMs - 5_000);
  expect(restMs).toBeLessThan(expectedMs + 120_000);
});

test("a back-off function is given the attempt, the error and the job", async () => {
  const db = await freshDatabase();
  const error = new Error("boom");
  const calls: unknown[][] = [];
  const backoff = (...given: unknown[]): string => {
    calls.push(given);
    return "1h";
  };
  const { row } = await runThrowing(db, error, { backoff });
  expect(calls).toEqual([[1, error, expect.objectContaining({ id: row!.id, task_identifier: "t", attempts: 1 })]]);
});

test("a back-off that throws or gives nonsense is logged, and the usual one counts", async () => {
  const db = await freshDatabase();
  const { worker, before, row } = await runThrowing(db, new Error("boom"), { backoff: () => "nonsense" });
  expect(row!.run_at.getTime() - before.getTime()).toBeLessThan(120_000);
  expect(row!.run_at.getTime() - before.getTime()).toBeGreaterThan(2_000);
  expect(worker.lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/usual back-off is used: .*gave 'nonsense'/),
  );
});

test("a job whose attempts are reset by hand while it runs is settled all the same", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const task = async (): Promise<void> => {
    await db.query("update graphile_worker._private_jobs set attempts = 0");
    throw new Error("no");
  };
  const taskOptions = { t: { backoff: { type: "fixed", delay: "1h" } } } as const;
  const worker = await startWorker(db, { t: task }, { taskOptions });
  const { id } = await utils.addJob("t", {});
  await worker.completed(1);
  expect(worker.of("job:lost")).toEqual([]);
  expect(await db.job(id)).toMatchObject({ attempts: 0, last_error: "no", locked_by: null });
});

test("a job that snoozes after it was cancelled is cancelled", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  let go: () => void = () => undefined;
  const task = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      go = resolve;
    });
    throw new SnoozeError("1h");
  };
  // No notification and no poll: the worker does not know of the cancel when the task throws.
  const { id } = await utils.addJob("t", {});
  const worker = await startWorker(db, { t: task }, { useNotifications: false });
  await worker.nth("job:start");
  await utils.cancelJobs([id]);
  go();
  await worker.completed(1);
  expect(await db.job(id)).toBeUndefined();
  expect(await cancellationOf(db, id)).toMatchObject({ outcome: "cancelled" });
  expect(worker.of("job:snoozed")).toEqual([]);
  expect(worker.of("job:cancelled")).toHaveLength(1);
  expect(worker.of("job:complete")[0]).toMatchObject({ outcome: "cancelled" });
});
