import { expect, test, vi } from "vitest";
import { runOnce } from "../../../src/runner/run.ts";
import type { TaskList } from "../../../src/task.ts";
import { freshDatabase, type JobRow, type TestDatabase, testPool } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";
import { recordEvents } from "../kit.ts";

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
const revoked = Proxy.revocable(new Error("gone"), {});
revoked.revoke();
const circular: { code: number; self?: unknown } = { code: 42 };
circular.self = circular;
function withGetter(property: "message" | "stack" | "cause" | "name"): Error {
  return Object.defineProperty(new Error("readable"), property, {
    get: () => {
      throw new Error(`even the ${property} throws`);
    },
  });
}
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
  ["an object without a prototype", nullProto, "Non-error thrown: {}"],
  ["an object with properties", { code: 42 }, 'Non-error thrown: {"code":42}'],
  ["an object that contains itself", circular, 'Non-error thrown: {"code":42,"self":"[circular]"}'],
  ["a revoked proxy", revoked.proxy, "Non-error thrown: [unreadable]"],
  ["an error whose message throws", withGetter("message"), "Error whose message cannot be read"],
  ["an error whose stack throws", withGetter("stack"), "readable"],
  ["an error whose cause throws", withGetter("cause"), "readable"],
  ["an error whose name throws", withGetter("name"), "readable"],
  ["an error whose message is a symbol", Object.assign(new Error("x"), { message: Symbol("s") }), "Symbol(s)"],
  [
    "an error with a cause",
    new Error("fetch failed", { cause: new Error("why") }),
    "fetch failed\n  cause: Error: why",
  ],
  ["an object that throws when it is looked at", throwing, expect.any(String)],
  ["a text that PostgreSQL cannot hold", new Error("a\u0000b"), "ab"],
  ["a broken surrogate", new Error("a\ud800b"), "a\ufffdb"],
] as const)(
  "a task that throws %s, at once or later, leaves a readable last_error",
  async (_name, thrown, expected) => {
    const db = await freshDatabase();
    await db.query("select graphile_worker.add_job('sync'), graphile_worker.add_job('async')");
    const { left, lines, of } = await drain(db, {
      sync: () => {
        throw thrown;
      },
      async: async () => Promise.reject(thrown),
    });
    expect(of("pool:fatalError")).toEqual([]);
    expect(lines.filter(({ message }) => message.startsWith("Failed task"))).toHaveLength(2);
    expect(left.map(({ last_error }) => last_error)).toEqual([expected, expected]);
    expect(left.every(({ attempts, locked_by }) => attempts === 1 && locked_by === null)).toBe(true);
    expect(of("job:error").every(({ error }) => error instanceof Error)).toBe(true);
  },
);

test("the last_error of a huge error keeps its head and its tail and takes 64 kB at most", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t')");
  const { left, lines } = await drain(db, {
    t: () => {
      throw new Error(`BEGIN${"🐘".repeat(5_000_000)}`, { cause: new Error("END") });
    },
  });
  const [{ last_error }] = left as [JobRow];
  expect(Buffer.byteLength(last_error!)).toBeLessThanOrEqual(65_536);
  expect(last_error!.slice(0, 7)).toBe("BEGIN🐘");
  expect(last_error!.match(/… \([\d,]+ characters cut\) …/g)).toHaveLength(1);
  expect(last_error!.slice(-22)).toBe("🐘\n  cause: Error: END");
  expect(lines.every(({ message }) => Buffer.byteLength(message) <= 65_536)).toBe(true);
});

test("a job that fails inside withPgClient with an error that cannot be looked at returns its connection", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url, 2);
  pgPool.on("connect", (client) => client.on("error", () => undefined));
  for (let n = 0; n < 4; n++) await db.query("select graphile_worker.add_job('t')");
  const { logger } = rememberingLogger();
  await runOnce({
    pgPool,
    noHandleSignals: true,
    logger,
    taskList: { t: (_payload, { withPgClient }) => withPgClient(() => Promise.reject(revoked.proxy)) },
  });
  expect((await db.jobs()).map(({ attempts, locked_by }) => [attempts, locked_by])).toEqual(Array(4).fill([1, null]));
});

test("the log shows where the items of a batch failed, in the user's own code", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', '[1, 2]')");
  const { lines, left } = await drain(db, {
    t: (items: number[]) => items.map(async (item) => Promise.reject(new Error(`item ${item}`, { cause: "paper" }))),
  });
  const line = lines.find(({ message }) => message.startsWith("Failed task"))!.message;
  expect(line.match(/error: Error: item \d\n.*outcomes\.test\.ts/g)).toHaveLength(2);
  expect(left).toMatchObject([{ last_error: "Batch failures:\nitem 1\nitem 2\n  cause: paper\n  cause: paper" }]);
});

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
