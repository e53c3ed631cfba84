import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import { makeAddJob, makeSharedAddJob } from "../../src/client/add-job.ts";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import type { AddJobFunction } from "../../src/job.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { sharedDatabase } from "../support/shared-database.ts";

const settings = { useNodeTime: false };

function open(db: TestDatabase): Database {
  return poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
}

describe.each([
  ["alone", makeAddJob],
  ["shared", makeSharedAddJob],
])("addJob (%s)", (_, make) => {
  const database = sharedDatabase();

  test("a job has the database's defaults where nothing is said", async () => {
    const db = database();
    const before = Date.now();
    const job = await make(open(db), settings)("greet", { name: "Ada" });
    expect(job).toEqual({
      id: expect.stringMatching(/^\d+$/),
      job_queue_id: null,
      task_id: expect.any(Number),
      task_identifier: "greet",
      payload: { name: "Ada" },
      priority: 0,
      run_at: expect.any(Date),
      attempts: 0,
      max_attempts: 25,
      last_error: null,
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
      key: null,
      locked_at: null,
      locked_by: null,
      revision: 0,
      flags: null,
      is_available: true,
    });
    expect(Math.abs(job.run_at.getTime() - before)).toBeLessThan(60_000);
    expect(await db.job(job.id)).toMatchObject(job);
  });

  test("everything that is said reaches the row", async () => {
    const db = database();
    const runAt = new Date("2031-02-03T04:05:06.789Z");
    const job = await make(open(db), settings)("greet", [1, "two"], {
      queueName: "letters",
      runAt,
      priority: -3,
      maxAttempts: 4,
      jobKey: "greeting",
      flags: ["gpu", 'odd "flag", {}'],
    });
    expect(await db.job(job.id)).toMatchObject({
      queue_name: "letters",
      run_at: runAt,
      priority: -3,
      max_attempts: 4,
      key: "greeting",
      flags: { gpu: true, 'odd "flag", {}': true },
      payload: [1, "two"],
    });
  });

  test("zero is a value", async () => {
    const db = database();
    const addJob = make(open(db), settings);
    await addJob("t", 0, { jobKey: "k", priority: 5 });
    expect(await addJob("t", 0, { jobKey: "k", priority: 0 })).toMatchObject({ priority: 0, payload: 0 });
  });

  test.each([
    [undefined, {}],
    [null, {}],
    ["text", "text"],
    [false, false],
    [[], []],
    [{ nested: [{ "ключ 🐘": "\u0000\ud800 '\"\\" }] }, { nested: [{ "ключ 🐘": "\u0000\ud800 '\"\\" }] }],
    [new Date("2031-01-01T00:00:00Z"), "2031-01-01T00:00:00.000Z"],
  ])("the payload %j arrives as %j", async (payload, arrived) => {
    const db = database();
    const addJob = make(open(db), settings);
    const [one, other] = await Promise.all([addJob("t", payload), addJob("t", payload)]);
    expect(one.payload).toEqual(arrived);
    expect(other.payload).toEqual(arrived);
  });

  test("the three key modes do what they say", async () => {
    const db = database();
    const addJob = make(open(db), settings);
    const runAt = new Date("2031-01-01T00:00:00Z");
    const later = new Date("2032-01-01T00:00:00Z");
    const first = await addJob("t", 1, { jobKey: "modes", runAt });
    const preserved = await addJob("t", 2, { jobKey: "modes", runAt: later, jobKeyMode: "preserve_run_at" });
    expect(preserved).toMatchObject({ id: first.id, payload: 2, run_at: runAt, revision: 1 });
    const deduped = await addJob("t", 3, { jobKey: "modes", runAt: later, jobKeyMode: "unsafe_dedupe" });
    expect(deduped).toMatchObject({ id: first.id, payload: 2, run_at: runAt, revision: 2 });
    const replaced = await addJob("t", 4, { jobKey: "modes", runAt: later, jobKeyMode: "replace" });
    expect(replaced).toMatchObject({ id: first.id, payload: 4, run_at: later, revision: 3 });
  });

  test("with useNodeTime a job without a time gets this process's", async () => {
    const db = database();
    const now = new Date("2001-01-01T00:00:00Z");
    vi.useFakeTimers({ now, toFake: ["Date"] });
    try {
      const addJob = make(open(db), { useNodeTime: true });
      expect((await addJob("t", {})).run_at).toEqual(now);
      const runAt = new Date("2031-01-01T00:00:00Z");
      expect((await addJob("t", {}, { runAt })).run_at).toEqual(runAt);
    } finally {
      vi.useRealTimers();
    }
  });

  test("the id is a text even where bigints are parsed as numbers", async () => {
    const db = database();
    const types = { getTypeParser: (oid: number) => (oid === 20 ? Number : pg.types.getTypeParser(oid)) as never };
    const pool = testPool(db.url, 1, { types });
    const job = await make(open({ ...db, pool }), settings)("t", {});
    expect(typeof job.id).toBe("string");
  });
});

describe("adds that are in flight together", () => {
  /** Counts the statements that are run. */
  function counting(database: Database): { database: Pick<Database, "run">; ran: string[] } {
    const ran: string[] = [];
    const run: Database["run"] = (statement, params) => {
      ran.push(statement.name);
      return database.run(statement, params);
    };
    return { database: { run }, ran };
  }

  test("share a statement, and each caller gets its own job", async () => {
    const db = await freshDatabase();
    const { database, ran } = counting(open(db));
    const addJob = makeSharedAddJob(database, settings);
    const names = Array.from({ length: 200 }, (_, index) => `task-${index % 7}`);
    const jobs = await Promise.all(names.map((name, index) => addJob(name, { index }, { priority: index })));
    expect(jobs.map((job) => job.task_identifier)).toEqual(names);
    expect(jobs.map((job) => job.payload)).toEqual(names.map((_, index) => ({ index })));
    expect(jobs.map((job) => job.priority)).toEqual(names.map((_, index) => index));
    expect(new Set(jobs.map((job) => job.id)).size).toBe(200);
    expect(ran).toEqual(["add_plain_jobs"]);
  });

  test("a lone add goes out alone, and keyed ones never wait for each other", async () => {
    const db = await freshDatabase();
    const { database, ran } = counting(open(db));
    const addJob = makeSharedAddJob(database, settings);
    await addJob("t", {});
    await Promise.all([addJob("t", {}, { jobKey: "a" }), addJob("t", {}, { jobKey: "b" })]);
    expect(ran).toEqual(["add_job", "add_job", "add_job"]);
  });

  test("a bad one among them harms nobody else", async () => {
    const db = await freshDatabase();
    await db.query(
      "alter table graphile_worker._private_jobs add constraint no_13 check (payload::text <> '13') not valid",
    );
    const addJob = makeSharedAddJob(open(db), settings);
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => addJob("t", index)));
    const failed = results.flatMap((result, index) => (result.status === "rejected" ? [[index, result.reason]] : []));
    expect(failed).toEqual([[13, expect.objectContaining({ code: "23514" })]]);
    expect((await db.jobs()).map((job) => job.payload).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 20 }, (_, index) => index).filter((index) => index !== 13),
    );
  });

  test("a bad one that is found here is never sent", async () => {
    const db = await freshDatabase();
    const addJob: AddJobFunction = makeSharedAddJob(open(db), settings);
    const results = await Promise.allSettled([addJob("t", 1), addJob("t", 2n), addJob("t", 3)]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await db.jobs()).toHaveLength(2);
  });

  test("when the line breaks nothing is added a second time", async () => {
    const db = await freshDatabase();
    const real = open(db);
    const run: Database["run"] = async (statement, params) => {
      await real.run(statement, params);
      throw Object.assign(new Error("Connection terminated unexpectedly"), { code: "ECONNRESET" });
    };
    const addJob = makeSharedAddJob({ run }, settings);
    const results = await Promise.allSettled([addJob("t", 1), addJob("t", 2), addJob("t", 3)]);
    expect(results.map((result) => result.status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await db.jobs()).toHaveLength(3);
  });
});
