import { expect, test, vi } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import type { TaskList } from "../../src/task.ts";
import { freshDatabase, type JobRow, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { recordEvents } from "./kit.ts";

/** Runs what is due and gives what is left. */
async function drain(db: TestDatabase, taskList: TaskList) {
  const recording = recordEvents();
  const { logger, lines } = rememberingLogger();
  await runOnce({ connectionString: db.url, noHandleSignals: true, events: recording.events, logger, taskList });
  return { ...recording, lines, left: await db.jobs() };
}

const backOffs = [1, 2, 5, 9, 10, 11, 24];
test.each(backOffs)("after attempt %i a job waits exp(least(10, attempts)) seconds", async (attempt) => {
  const db = await freshDatabase();
  const { logger } = rememberingLogger();
  await db.query("select graphile_worker.add_job('t')");
  await db.query("update graphile_worker._private_jobs set attempts = $1 - 1", [attempt]);
  const fail = (): never => {
    throw new Error("again");
  };
  await runOnce({ connectionString: db.url, noHandleSignals: true, logger, taskList: { t: fail } });
  const [row] = await db.query<{ wait: number; attempts: number; last_error: string }>(
    "select extract(epoch from run_at - now())::float8 as wait, attempts, last_error from graphile_worker._private_jobs",
  );
  expect(row).toMatchObject({ attempts: attempt, last_error: "again" });
  const expected = Math.exp(Math.min(10, attempt));
  expect(row!.wait).toBeLessThanOrEqual(expected);
  expect(row!.wait).toBeGreaterThan(expected - 20);
});

test("the back-off counts from run_at where that is later than now", async () => {
  const db = await freshDatabase();
  const { logger } = rememberingLogger();
  await db.query("select graphile_worker.add_job('t', run_at => now())");
  const t = async (_payload: unknown, { job }: { job: { id: string } }): Promise<never> => {
    await db.query("update graphile_worker._private_jobs set run_at = '2100-01-01' where id = $1", [job.id]);
    throw new Error("again");
  };
  await runOnce({ connectionString: db.url, noHandleSignals: true, logger, taskList: { t } });
  const [job] = await db.jobs();
  expect(job!.run_at.getTime() - Date.parse("2100-01-01T00:00:00Z")).toBeCloseTo(Math.E * 1000, -1);
});

test("a job out of attempts stays with its last error and is not run again", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', max_attempts => 1)");
  const { left, names } = await drain(db, {
    t: () => {
      throw new Error("for good");
    },
  });
  expect(left).toMatchObject([
    { attempts: 1, max_attempts: 1, last_error: "for good", locked_by: null, is_available: false },
  ]);
  expect(names()).toContain("job:failed");
  await db.query("update graphile_worker._private_jobs set run_at = now()");
  const t = vi.fn();
  await drain(db, { t });
  expect(t).not.toHaveBeenCalled();
});

const nullProto = Object.create(null) as unknown;
const throwing = {
  get message(): string {
    throw new Error("even the message throws");
  },
};
test.each([
  ["an error", new Error("boom"), "boom"],
  ["an error without a message", new Error(""), "Error"],
  ["an error whose message is no text", Object.assign(new Error("x"), { message: 42 }), "42"],
  ["an object with a message", { message: "like an error" }, "like an error"],
  ["a text", "just words", "just words"],
  ["an empty text", "", "Non-error thrown: "],
  ["a number", 7, "Non-error thrown: 7"],
  ["null", null, "Non-error thrown: null"],
  ["undefined", undefined, "Non-error thrown: undefined"],
  ["a symbol", Symbol("s"), "Non-error thrown: Symbol(s)"],
  ["an object that cannot be text", nullProto, "Non-error thrown: object"],
  ["an object that throws when it is looked at", throwing, expect.any(String)],
  ["a text that PostgreSQL cannot hold", new Error("a\u0000b"), "ab"],
  ["a broken surrogate", new Error("a\ud800b"), "a\ufffdb"],
] as const)(
  "a task that throws %s, at once or later, leaves a readable last_error",
  async (_name, thrown, expected) => {
    const db = await freshDatabase();
    await db.query("select graphile_worker.add_job('sync'), graphile_worker.add_job('async')");
    const { left, of } = await drain(db, {
      sync: () => {
        throw thrown;
      },
      async: async () => Promise.reject(thrown),
    });
    expect(left.map(({ last_error }) => last_error)).toEqual([expected, expected]);
    expect(left.every(({ attempts, locked_by }) => attempts === 1 && locked_by === null)).toBe(true);
    expect(of("job:error").every(({ error }) => error instanceof Error)).toBe(true);
  },
);

test("a batch job keeps only the items that failed, in their order", async () => {
  const db = await freshDatabase();
  await db.query(`select graphile_worker.add_job('t', '[1, 2, {"n": 3}, 4]')`);
  const { left, of } = await drain(db, {
    t: (items: unknown[]) =>
      items.map((item) =>
        item === 1 || item === 4 ? Promise.resolve() : Promise.reject(new Error(JSON.stringify(item))),
      ),
  });
  expect(left).toMatchObject([{ payload: [2, { n: 3 }], attempts: 1, last_error: 'Batch failures:\n2\n{"n":3}' }]);
  const [{ batchJobErrors } = {}] = of("job:error");
  expect(batchJobErrors?.map(({ message }) => message)).toEqual(["2", '{"n":3}']);
});

const done = async (): Promise<void> => undefined;
test.each<[string, TaskList[string], Partial<JobRow>[]]>([
  ["all items succeed", async (items: unknown[]) => items.map(done), []],
  ["plain values count as success", (items: unknown[]) => items.map(() => false), []],
  [
    "the task itself throws: all items stay",
    () => {
      throw new Error("all");
    },
    [{ payload: [1, 2], last_error: "all" }],
  ],
  ["no array comes back", () => 7, []],
])("a batch job: %s", async (_name, t, expected) => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', '[1, 2]')");
  expect((await drain(db, { t })).left).toMatchObject(expected);
});

test("a batch task that returns another number of results is taken as done, with a warning", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', '[1, 2]')");
  expect((await drain(db, { t: () => [done()] })).left).toEqual([]);
  expect(warn).toHaveBeenCalledOnce();
  warn.mockRestore();
});

test("what a task returns for a payload that is no array does not matter", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', '{}')");
  expect((await drain(db, { t: async () => ["x"] })).left).toEqual([]);
});

test("a batch task that spoiled its payload fails as a whole, and the worker goes on", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', '[1]'), graphile_worker.add_job('fine')");
  const { left } = await drain(db, {
    t: (items: unknown[]) => {
      items[0] = 10n;
      return [Promise.reject(new Error("no"))];
    },
    fine: () => undefined,
  });
  expect(left).toMatchObject([{ payload: [1], last_error: expect.stringContaining("BigInt"), locked_by: null }]);
});
