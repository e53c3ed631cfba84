import { expect, onTestFinished, test } from "vitest";
import { defineTask, type MakeWorkerUtilsOptions, makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";

async function open(db: TestDatabase, options?: MakeWorkerUtilsOptions): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ pgPool: db.pool, schema: db.schema }, options);
  onTestFinished(() => utils.release());
  return utils;
}

test("pages, counts and single jobs are reached through the utils, with ids as strings or numbers", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  await utils.addJobs(Array.from({ length: 5 }, (_, index) => ({ identifier: "mail", payload: { index } })));

  const first = await utils.listJobs({ task: "mail" }, { limit: 3 });
  const second = await utils.listJobs({ task: "mail" }, { limit: 3, after: first.next });
  expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual(["5", "4", "3", "2", "1"]);
  expect(second.next).toBeNull();
  expect(await utils.countJobs({ task: "mail", state: "waiting" })).toBe(5);
  expect(await utils.countJobs()).toBe(5);
  expect(await utils.getJob(2)).toMatchObject({ id: "2", state: "waiting", payload: { index: 1 } });
  expect(await utils.explainJob(2)).toMatchObject({ id: "2", state: "waiting" });
  await expect(utils.getJob("9223372036854775808")).rejects.toThrow("A job id must be a whole number");
});

test("jobs that match a filter are changed in batches, with progress, and until a signal stops it", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  await utils.addJobs(Array.from({ length: 7 }, () => ({ identifier: "mail", payload: {} })));
  await utils.permanentlyFailJobs([1, 2, 3, 4, 5], "no server");
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where id = 6");

  const seen: number[] = [];
  const stop = new AbortController();
  const cut = await utils.changeMatchingJobs({ state: "dead" }, (ids) => utils.retryJobs(ids), {
    batchSize: 2,
    signal: stop.signal,
    onProgress: ({ matched }) => {
      seen.push(matched);
      if (matched === 4) stop.abort();
    },
  });
  expect(cut).toEqual({ matched: 4, changed: ["1", "2", "3", "4"], isComplete: false });
  expect(seen).toEqual([2, 4]);
  expect(await utils.getJob(1)).toMatchObject({ state: "waiting", attempts: 0 });

  const all = await utils.changeMatchingJobs({ task: "mail" }, (ids) => utils.completeJobs(ids));
  expect(all).toMatchObject({ matched: 7, isComplete: true });
  expect(all.changed).toHaveLength(6);
  expect((await utils.listJobs()).jobs).toMatchObject([{ id: "6", state: "running" }]);
});

test("a retried job runs now by the database's clock, however this machine's is set", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const { id } = await utils.addJob("mail", {}, { runAt: new Date("2100-01-01") });
  const [before] = await db.query<{ now: Date }>("select now()");
  const [job] = await utils.retryJobs([id]);
  const [after] = await db.query<{ now: Date }>("select now()");
  expect(job!.run_at.getTime()).toBeGreaterThanOrEqual(before!.now.getTime());
  expect(job!.run_at.getTime()).toBeLessThanOrEqual(after!.now.getTime());
});

test("a transaction of the utils adds everything or nothing", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  await db.query("create table notes (text text)");
  const count = await utils.transaction(async (jobs, client) => {
    await client.query("insert into notes values ('kept')");
    await jobs.addJob("mail", {});
    return 1;
  });
  expect(count).toBe(1);
  const failing = utils.transaction(async (jobs, client) => {
    await client.query("insert into notes values ('lost')");
    await jobs.addJob("mail", {});
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(await utils.countJobs()).toBe(1);
  expect(await db.query("select text from notes")).toEqual([{ text: "kept" }]);
});

test("utils that must not migrate leave the schema alone, and tell what a migration would do", async () => {
  const db = await freshDatabase({ migrated: false });
  const utils = await open(db, { migrate: false });
  expect(await db.query("select from pg_namespace where nspname = 'graphile_worker'")).toEqual([]);
  expect(utils.schema).toBe("graphile_worker");
  expect(await utils.planMigration()).toContain("create schema");
  await utils.migrate();
  expect(await utils.planMigration()).toBe("");
});

test("payloads are checked against task definitions, and recurring jobs are listed", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const strict = defineTask({
    identifier: "strict",
    payload: {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value: unknown) =>
          typeof value === "object" && value !== null && "to" in value
            ? { value: value as { to: string } }
            : { issues: [{ message: "to is missing" }] },
      },
    },
    run: async () => undefined,
  });
  await db.query("select graphile_worker.add_job('strict', '{\"to\":\"a\"}'), graphile_worker.add_job('strict', '{}')");
  const report = await utils.checkPayloads({ strict });
  expect(report).toMatchObject({ checked: 2, unfit: 1, jobs: [{ id: "2" }] });
  await db.query(
    "insert into graphile_worker._private_known_crontabs (identifier, known_since) values ('nightly', now())",
  );
  expect(await utils.listCrontabs()).toMatchObject([{ identifier: "nightly", last_execution: null }]);
});
