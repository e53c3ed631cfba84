import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { executorFor } from "../../src/client/transaction/executor-for.ts";
import { statement } from "../../src/db/statement.ts";
import type { DbJob } from "../../src/job.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { libraries } from "./libraries/all.ts";
import type { OpenLibrary } from "./libraries/library.ts";

interface Wanted {
  payload?: unknown;
  queue?: string;
  runAt?: Date;
  priority?: number;
  key?: string;
  flags?: string[];
}

const addJob = statement<Wanted, DbJob>({
  name: "add_job_in_test",
  text: `
    select job.id, job.job_queue_id, job.task_id, job.payload, job.priority, job.run_at, job.attempts, job.max_attempts,
      job.last_error, job.created_at, job.updated_at, job.key, job.locked_at, job.locked_by, job.revision, job.flags
    from graphile_worker.add_job(
      'greet', payload => $1::json, queue_name => $2::text, run_at => $3::timestamptz, priority => $4::int,
      job_key => $5::text, flags => $6::text[]
    ) as job
    where '{"a": 1}'::jsonb ? 'a'`,
  values: ({ payload, queue, runAt, priority, key, flags }) => [
    JSON.stringify(payload ?? null),
    queue,
    runAt,
    priority,
    key,
    flags,
  ],
});

const awkward = {
  text: "what? $1 :name ?? \\? {1,2} 'quoted' \"twice\" \\ back ☃ \u0001 50% $ {",
  json: '{"looks":"like JSON"}',
  date: "2026-01-02T03:04:05.678Z",
  bigint: "9007199254740993",
  nested: [null, true, 1.5, { deep: [] }],
};

describe.each(libraries)("a transaction of $name", (each) => {
  let db: TestDatabase;
  let library: OpenLibrary;

  beforeAll(async () => {
    db = await freshDatabase({ cleanUp: () => undefined });
    library = await each.open(db.url);
  });

  afterAll(async () => {
    await library?.close();
    await db?.drop();
  });

  test("rolled back leaves nothing", async () => {
    const rollback = library.transaction(async (tx) => {
      await executorFor(tx, "graphile_worker").run(addJob, { payload: { id: 1 } });
      throw new Error("changed my mind");
    });

    await expect(rollback).rejects.toThrow("changed my mind");
    expect(await db.jobs()).toEqual([]);
  });

  test("committed leaves the job, which nobody else sees before", async () => {
    let before: unknown[] = [];
    await library.transaction(async (tx) => {
      await executorFor(tx, "graphile_worker").run(addJob, { payload: { id: 1 }, key: "committed" });
      before = await db.jobs();
    });

    expect(before).toEqual([]);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "greet", payload: { id: 1 }, key: "committed" }]);
  });

  test("gives rows of the same types as pg does, for values that drivers treat differently", async () => {
    await db.query(`alter sequence graphile_worker.jobs_id_seq1 restart with 9007199254740993`);
    const runAt = new Date("2030-01-02T03:04:05.678Z");
    const flags = ["plain", "with,comma", 'with "quote"', "back\\slash", "NULL", "", "{}"];
    const rows: DbJob[] = [];

    await library.transaction(async (tx) => {
      const executor = executorFor(tx, "graphile_worker");
      const wanted = { payload: awkward, queue: "a ? queue", runAt, priority: 0, key: "awkward", flags };
      rows.push(...(await executor.run(addJob, wanted)));
    });

    const id = "9007199254740993";
    const kept = await db.job(id);
    const { task_identifier: _, queue_name: queue, is_available: __, ...columns } = kept!;
    expect(rows).toEqual([columns]);
    expect(kept).toMatchObject({ id, payload: awkward, run_at: runAt, priority: 0 });
    expect(kept?.flags).toEqual(Object.fromEntries(flags.map((flag) => [flag, true])));
    expect(queue).toBe("a ? queue");
  });

  test.each([null, "", "text", '{"text":"of JSON"}', "2026-01-02", 0, 12, false, [], [1, "?"], {}])(
    "carries the payload %j unchanged",
    async (payload) => {
      const returned: unknown[] = [];
      await library.transaction(async (tx) => {
        const executor = executorFor(tx, "graphile_worker");
        for (const row of await executor.run(addJob, { payload, key: "payload" })) returned.push(row.payload);
      });

      const [kept] = await db.query("select payload from graphile_worker._private_jobs where key = 'payload'");
      expect([...returned, kept?.payload]).toEqual([payload, payload]);
    },
  );

  test("takes several statements at once", async () => {
    const keys = ["one", "two", "three"];
    await library.transaction(async (tx) => {
      await Promise.all(keys.map((key) => executorFor(tx, "graphile_worker").run(addJob, { key })));
    });

    const rows = await db.query("select key from graphile_worker._private_jobs where key = any ($1) order by id", [
      keys,
    ]);
    expect(rows.map(({ key }) => key)).toEqual(keys);
  });

  test("gets no prepared statement", async () => {
    const prepared = statement<null, { statement: string }>({
      name: "prepared",
      text: "select statement from pg_prepared_statements where statement like '%add_job%'",
      values: () => [],
    });
    await library.transaction(async (tx) => {
      const executor = executorFor(tx, "graphile_worker");
      await executor.run(addJob, {});
      await executor.run(addJob, {});
      expect(await executor.run(prepared, null)).toEqual([]);
    });
  });

  test("is asked for when the library itself is handed in", () => {
    expect(() => executorFor(library.outside as never, "graphile_worker")).toThrow(/which is not a transaction: /);
  });
});
