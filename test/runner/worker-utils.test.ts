import { expect, onTestFinished, test, vi } from "vitest";
import type { WorkerUtilsOptions } from "../../src/config/options.ts";
import { addJobAdhoc, quickAddJob } from "../../src/runner/add-job-adhoc.ts";
import { runMigrations } from "../../src/runner/run-migrations.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

async function open(db: TestDatabase, options: WorkerUtilsOptions = {}): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url, ...options });
  onTestFinished(() => utils.release());
  return utils;
}

test("the utilities install the schema and work under any name of it", async () => {
  const schema = 'odd "name" $&';
  const db = await freshDatabase({ migrated: false, schema });
  const utils = await open(db, { schema });
  const job = await utils.addJob("t", { a: 1 }, { jobKey: "k", queueName: "q" });
  const [other] = await utils.addJobs([{ identifier: "u", payload: {} }]);
  expect(await db.job(job.id)).toMatchObject({ task_identifier: "t", payload: { a: 1 }, queue_name: "q" });
  expect(await utils.rescheduleJobs([job.id], { priority: 3 })).toMatchObject([{ id: job.id, priority: 3 }]);
  expect(await utils.permanentlyFailJobs([job.id], "no")).toMatchObject([{ id: job.id, last_error: "no" }]);
  expect(await utils.removeJob("k")).toMatchObject({ id: job.id });
  expect(await utils.completeJobs([other!.id])).toMatchObject([{ id: other!.id }]);
  await utils.forceUnlockWorkers(["nobody"]);
  await utils.cleanup({ tasks: ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS", "DELETE_PERMAFAILED_JOBS"] });
  await utils.migrate();
  expect(await db.jobs()).toEqual([]);
  expect(await db.query("select from graphile_worker._private_tasks")).toEqual([]);
});

test("withPgClient lends a client and takes it back; withRetries tries again when the database asks for it", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const one = await utils.withPgClient(async (client) => (await client.query("select 1 as one")).rows[0].one);
  expect(one).toBe(1);
  let tries = 0;
  const result = await utils.withPgClient.withRetries(async () => {
    tries++;
    if (tries < 3) throw Object.assign(new Error("deadlock"), { code: "40P01" });
    return "done";
  });
  expect([result, tries]).toEqual(["done", 3]);
});

test("what is done on a caller's transaction is there after a commit, and gone after a rollback", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const waiting = await utils.addJob("t", 1, { jobKey: "waiting" });
  const work = async (end: "commit" | "rollback"): Promise<void> => {
    const client = await db.pool.connect();
    await client.query("begin");
    const inside = utils.withTransaction(client);
    const [one, , batch] = await Promise.all([
      inside.addJob("one", { n: 1 }),
      inside.addJobs([{ identifier: "many", payload: {} }]),
      inside.addBatchJob("batch", [1, 2]),
    ]);
    expect(one).toMatchObject({ task_identifier: "one", payload: { n: 1 }, run_at: expect.any(Date) });
    expect(batch.payload).toEqual([1, 2]);
    expect(await inside.rescheduleJobs([waiting.id], { priority: 9 })).toHaveLength(1);
    expect(await inside.removeJob("waiting")).toMatchObject({ id: waiting.id, priority: 9 });
    await client.query(end);
    client.release();
  };
  await work("rollback");
  expect((await db.jobs()).map((job) => job.task_identifier)).toEqual(["t"]);
  await work("commit");
  expect((await db.jobs()).map((job) => job.task_identifier).sort()).toEqual(["batch", "many", "one"]);
});

test("release may be called twice and ends only a pool of ours", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url);
  const { logger } = rememberingLogger();
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.release();
  await utils.release();
  expect(pgPool.ended).toBe(false);
});

test("release waits for adds under way", async () => {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ connectionString: db.url });
  const adding = [utils.addJob("t", 1), utils.addJob("t", 2), utils.addJobs([{ identifier: "t", payload: 3 }])];
  await utils.release();
  await Promise.all(adding);
  expect(await db.jobs()).toHaveLength(3);
});

test("the utilities can be left to `await using`", async () => {
  const db = await freshDatabase();
  const pgPool = testPool(db.url);
  const { logger } = rememberingLogger();
  const utils = await makeWorkerUtils({ pgPool, logger });
  expect(pgPool.listenerCount("connect")).toBe(1);
  await utils[Symbol.asyncDispose]();
  expect(pgPool.listenerCount("connect")).toBe(0);
});

test("a schema that cannot be worked with closes what was opened", async () => {
  const db = await freshDatabase();
  await db.query("insert into graphile_worker.migrations (id, breaking) values (999999, true)");
  await expect(makeWorkerUtils({ connectionString: db.url })).rejects.toThrow("revision 999999");
  expect(process.exitCode).toBe(57);
  process.exitCode = undefined;
});

test("useNodeTime reaches every way of adding", async () => {
  const db = await freshDatabase();
  const now = new Date("2001-01-01T00:00:00Z");
  const utils = await open(db, { useNodeTime: true });
  vi.useFakeTimers({ now, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const jobs = [
    await utils.addJob("t", {}),
    ...(await utils.addJobs([{ identifier: "t", payload: {} }])),
    await utils.addBatchJob("t", [1]),
  ];
  expect(jobs.map((job) => job.run_at)).toEqual([now, now, now]);
});

test("the logger says that it speaks for the utilities", async () => {
  const db = await freshDatabase();
  const { Logger } = await import("../../src/logger.ts");
  const labels: unknown[] = [];
  const logger = new Logger((scope) => () => {
    labels.push(scope.label);
  });
  const utils = await open(db, { logger });
  utils.logger.info("hello");
  expect(labels).toEqual(["WorkerUtils"]);
});

test("addJobAdhoc and its older name add one job, migrating first", async () => {
  const db = await freshDatabase({ migrated: false });
  const job = await addJobAdhoc({ connectionString: db.url }, "t", { a: 1 }, { priority: 2 });
  expect(job).toMatchObject({ task_identifier: "t", priority: 2 });
  expect(quickAddJob).toBe(addJobAdhoc);
  await expect(addJobAdhoc({ connectionString: db.url }, "t", 1n)).rejects.toThrow("cannot be written as JSON");
  expect(await db.jobs()).toHaveLength(1);
});

test("runMigrations calls plugins in their order, around what it does", async () => {
  const db = await freshDatabase({ migrated: false });
  const called: string[] = [];
  const note = (name: string) => (_ctx: unknown, event: { client: unknown; postgresVersion: number }) => {
    expect(event.postgresVersion).toBeGreaterThan(120_000);
    called.push(name);
  };
  const plugin: GraphileConfig.Plugin = {
    name: "Notes",
    worker: {
      hooks: {
        prebootstrap: note("prebootstrap"),
        postbootstrap: note("postbootstrap"),
        premigrate: note("premigrate"),
        postmigrate: note("postmigrate"),
      },
      middleware: {
        async bootstrap(next) {
          called.push("bootstrap");
          await next();
          called.push("bootstrapped");
        },
        async migrate(next, { ctx }) {
          called.push(`migrate ${ctx.workerSchema}`);
          await next();
          called.push("migrated");
        },
      },
    },
  };
  await runMigrations({ connectionString: db.url, preset: { plugins: [plugin] } });
  expect(called).toEqual([
    "bootstrap",
    "prebootstrap",
    "postbootstrap",
    "bootstrapped",
    "migrate graphile_worker",
    "premigrate",
    "postmigrate",
    "migrated",
  ]);
  expect(await db.query("select max(id) as id from graphile_worker.migrations")).toEqual([{ id: 20 }]);
});
