import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CallerTransaction } from "../../src/caller-transaction.ts";
import { executorFor } from "../../src/client/transaction/executor-for.ts";
import { statement } from "../../src/db/statement.ts";
import type { DbJob, Job } from "../../src/job.ts";
import { type JobUtils, makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { libraries } from "./libraries/all.ts";
import type { OpenLibrary } from "./libraries/library.ts";

/** With everything in it that a library might take for a parameter. */
const schema = 'odd "name" $& $1 ? :x';
const awkward = {
  text: "what? $1 :name ?? \\? {1,2} 'quoted' \"twice\" \\ back ☃ \u0001 50% $ {",
  json: '{"looks":"like JSON"}',
  date: "2026-01-02T03:04:05.678Z",
  bigint: "9007199254740993",
  nested: [null, true, 1.5, { deep: [] }],
};
const flags = ["plain", "with,comma", 'with "quote"', "back\\slash", "NULL", "{}", "?", "$1"];

describe.each(libraries)("a transaction of $name", (each) => {
  let db: TestDatabase;
  let utils: QueueUtils;
  let library: OpenLibrary;

  beforeAll(async () => {
    db = await freshDatabase({ migrated: false, schema, cleanUp: () => undefined });
    utils = await makeWorkerUtils({ connectionString: db.url, maxPoolSize: 1, schema });
    library = await each.open(db.url);
  });

  afterAll(async () => {
    await library?.close();
    await utils?.release();
    await db?.drop();
  });

  /** Like the library's own, but returns what the work returned. */
  async function commit<T>(work: (inside: JobUtils) => Promise<T>): Promise<T> {
    const results: T[] = [];
    await library.transaction(async (tx) => {
      results.push(await work(utils.withTransaction(tx)));
    });
    return results[0]!;
  }

  test("rolled back leaves nothing", async () => {
    const rollback = library.transaction(async (tx) => {
      await utils.withTransaction(tx).addJob("greet", { id: 1 });
      await utils.withTransaction(tx).addJobs([{ identifier: "greet", payload: { id: 2 } }]);
      throw new Error("changed my mind");
    });

    await expect(rollback).rejects.toThrow("changed my mind");
    expect(await db.jobs()).toEqual([]);
  });

  test("committed leaves the job, which nobody else sees before", async () => {
    const before = await commit(async (inside) => {
      await inside.addJob("greet", { id: 1 }, { jobKey: "committed" });
      return db.jobs();
    });

    expect(before).toEqual([]);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "greet", payload: { id: 1 }, key: "committed" }]);
  });

  test("takes guards, and says what was skipped", async () => {
    const spec = { throttle: { key: awkward.text, period: "1h" } };
    const rollback = library.transaction(async (tx) => {
      await utils.withTransaction(tx).addJob("guarded", awkward, spec);
      throw new Error("changed my mind");
    });
    await expect(rollback).rejects.toThrow("changed my mind");

    const jobs = await commit(async (inside) => [
      await inside.addJob("guarded", awkward, spec),
      ...(await inside.addJobs([{ identifier: "guarded", payload: awkward, ...spec }])),
    ]);

    expect(jobs).toEqual([jobs[0], { ...jobs[0], skipped: "throttle" }]);
    const [row] = (await db.jobs()).filter(({ task_identifier }) => task_identifier === "guarded");
    const { queue_name: _queue, ...known } = row!;
    expect(jobs[0]).toEqual(known);
    await utils.completeJobs([row!.id]);
  });

  test("gives rows of the same types as pg does, for values that drivers treat differently", async () => {
    await db.query("alter sequence graphile_worker.jobs_id_seq1 restart with 9007199254740993");
    const spec = { queueName: "a ? queue", runAt: new Date(awkward.date), priority: 0, flags };

    const rows: Job[] = await commit(async (inside) => [
      await inside.addJob("greet ?", awkward, { ...spec, jobKey: "single '?'" }),
      ...(await inside.addJobs([
        { identifier: "greet $1", payload: awkward, ...spec },
        { identifier: "greet ?", payload: [awkward], priority: -32_768, maxAttempts: 1 },
      ])),
    ]);

    const kept = await Promise.all(rows.map(({ id }) => db.job(id)));
    expect(rows.map((row, index) => ({ ...row, queue_name: kept[index]?.queue_name }))).toEqual(kept);
    expect(rows.map(({ id, task_identifier }) => [id, task_identifier])).toEqual([
      ["9007199254740993", "greet ?"],
      ["9007199254740994", "greet $1"],
      ["9007199254740995", "greet ?"],
    ]);
    expect(kept[0]).toMatchObject({ payload: awkward, run_at: spec.runAt, priority: 0, queue_name: "a ? queue" });
    expect(kept[0]?.flags).toEqual(Object.fromEntries(flags.map((flag) => [flag, true])));
  });

  test("carries every kind of payload unchanged", async () => {
    const payloads = ["", "text", '{"text":"of JSON"}', "2026-01-02", 0, 12, false, [], [1, "?"], {}, { a: null }];
    const rows = await commit((inside) =>
      inside.addJobs(payloads.map((payload) => ({ identifier: "greet", payload }))),
    );

    expect(rows.map(({ payload }) => payload)).toEqual(payloads);
    expect(await Promise.all(rows.map(async ({ id }) => (await db.job(id))?.payload))).toEqual(payloads);
  });

  test("offers the same administration, with rows of the same types", async () => {
    const [first, second, third] = await commit((inside) =>
      inside.addJobs(["first", "second", "third"].map((jobKey) => ({ identifier: "greet", payload: {}, jobKey }))),
    );
    const runAt = new Date(awkward.date);

    const rows: (DbJob | null | undefined)[] = await commit(async (inside) => [
      (await inside.rescheduleJobs([first!.id], { runAt, attempts: 0, priority: 3 }))[0],
      (await inside.permanentlyFailJobs([second!.id], "what? $1"))[0],
      (await inside.completeJobs([third!.id]))[0],
      await inside.removeJob("first"),
      await inside.removeJob("never heard of ?"),
    ]);

    expect(rows[0]).toMatchObject({ id: first!.id, run_at: runAt, priority: 3, attempts: 0 });
    expect(rows[1]).toMatchObject({ id: second!.id, last_error: "what? $1", attempts: second!.max_attempts });
    expect(rows[1]).toEqual(expect.objectContaining({ updated_at: (await db.job(second!.id))?.updated_at }));
    expect(rows[2]).toMatchObject({ id: third!.id, created_at: third!.created_at });
    expect(rows[3]).toMatchObject({ id: first!.id, run_at: runAt });
    expect(rows[4]).toBeNull();
    expect(await db.job(first!.id)).toBeUndefined();
    expect(await db.job(third!.id)).toBeUndefined();
  });

  test("can free the jobs of a dead worker", async () => {
    const { id } = await commit((inside) => inside.addJob("greet", {}));
    await db.query("update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now() where id = $1", [
      id,
    ]);

    await commit((inside) => inside.forceUnlockWorkers(["dead", 'odd "one", \\']));

    expect(await db.job(id)).toMatchObject({ locked_by: null, locked_at: null });
  });

  test("takes several calls at once", async () => {
    const keys = ["one", "two", "three"];
    await library.transaction(async (tx) => {
      await Promise.all(keys.map((jobKey) => utils.withTransaction(tx).addJob("greet", {}, { jobKey })));
    });

    const rows = await db.query("select key from graphile_worker._private_jobs where key = any ($1) order by id", [
      keys,
    ]);
    expect(rows.map(({ key }) => key)).toEqual(keys);
  });

  test("gets no prepared statement", async () => {
    const ours = statement<null, { statement: string }>({
      name: "prepared",
      text: "select statement from pg_prepared_statements where statement like '%add_job%'",
      values: () => [],
    });
    await library.transaction(async (tx) => {
      await utils.withTransaction(tx).addJob("greet", {});
      await utils.withTransaction(tx).addJob("greet", {});
      expect(await executorFor(tx, schema).run(ours, null)).toEqual([]);
    });
  });

  test("is asked for when the library itself is handed in", () => {
    expect(() => utils.withTransaction(library.outside as CallerTransaction)).toThrow(/which is not a transaction: /);
  });
});
