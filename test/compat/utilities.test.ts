import { expect, onTestFinished, test } from "vitest";
import type { DbJob } from "../../src/index.ts";
import * as ours from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { bothWays } from "./both-ways.ts";
import { loadOriginal } from "./original.ts";

const runAt = new Date("2035-01-01T00:00:00Z");
const later = new Date("2036-01-01T00:00:00Z");

/** What two installations cannot have in common is left out. */
function comparable(job: DbJob | null): object {
  const { created_at, updated_at, locked_at, ...rest } = job!;
  expect(created_at).toBeInstanceOf(Date);
  expect(updated_at).toBeInstanceOf(Date);
  return { ...rest, isLocked: locked_at !== null };
}

async function lock(db: TestDatabase, id: string): Promise<void> {
  await db.query("update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-1' where id = $1", [
    id,
  ]);
}

bothWays(({ fresh, isOurs }) => {
  async function open(options: object = {}): Promise<{ db: TestDatabase; utils: ours.QueueUtils }> {
    const db = await fresh();
    const { makeWorkerUtils } = isOurs ? ours : await loadOriginal("0.18");
    const utils: ours.QueueUtils = await makeWorkerUtils({ connectionString: db.url, ...options });
    onTestFinished(() => utils.release());
    return { db, utils };
  }

  test("addJob gives the whole row, with the name of the task", async () => {
    const { utils } = await open();
    const job = await utils.addJob("greet", { name: "Ada" }, { runAt });
    expect(comparable(job)).toEqual({
      id: "1",
      job_queue_id: null,
      task_id: 1,
      task_identifier: "greet",
      payload: { name: "Ada" },
      priority: 0,
      run_at: runAt,
      attempts: 0,
      max_attempts: 25,
      last_error: null,
      key: null,
      locked_by: null,
      isLocked: false,
      revision: 0,
      flags: null,
      is_available: true,
    });
  });

  test("dates of other libraries, and numbers as names and names as numbers", async () => {
    const { utils, db } = await open();
    const likeDayjs = { toISOString: () => runAt.toISOString() };
    const spec = {
      runAt: likeDayjs,
      queueName: 7,
      jobKey: 42,
      priority: "3",
      maxAttempts: "4",
    } as unknown as ours.TaskSpec;
    const job = await utils.addJob("greet", {}, spec);
    expect(job).toMatchObject({ run_at: runAt, key: "42", priority: 3, max_attempts: 4 });
    const [listed] = await utils.addJobs([{ identifier: "greet", payload: {}, ...spec, jobKey: 43 as never }] as never);
    expect(listed).toMatchObject({ run_at: runAt, key: "43", priority: 3, max_attempts: 4 });
    expect((await db.jobs()).map(({ queue_name }) => queue_name)).toEqual(["7", "7"]);
  });

  test("addJob with everything said, and once more with its key", async () => {
    const { utils } = await open();
    const spec = { runAt, queueName: "q", priority: 3, maxAttempts: 4, jobKey: "k", flags: ["a", "b"] };
    expect(comparable(await utils.addJob("greet", [1], spec))).toMatchObject({
      run_at: runAt,
      job_queue_id: 1,
      priority: 3,
      max_attempts: 4,
      key: "k",
      flags: { a: true, b: true },
    });
    expect(comparable(await utils.addJob("wave", [2], { jobKey: "k", jobKeyMode: "preserve_run_at" }))).toMatchObject({
      id: "1",
      task_identifier: "wave",
      payload: [1, 2],
      run_at: runAt,
      job_queue_id: null,
      priority: 0,
      max_attempts: 25,
      flags: null,
      revision: 1,
    });
  });

  test.each([[undefined], [null]])("the payload %j becomes an empty object", async (payload) => {
    const { utils } = await open();
    expect((await utils.addJob("greet", payload)).payload).toEqual({});
    expect((await utils.addJobs([{ identifier: "greet", payload }]))[0]?.payload).toEqual({});
  });

  test("addJobs of one task gives its rows in order", async () => {
    const { utils } = await open();
    const rows = await utils.addJobs([
      { identifier: "greet", payload: { n: 1 }, runAt, queueName: "q", priority: 2, maxAttempts: 3, flags: ["f"] },
      { identifier: "greet", payload: { n: 2 }, jobKey: "k" },
    ]);
    expect(rows).toMatchObject([
      {
        id: "1",
        task_identifier: "greet",
        payload: { n: 1 },
        run_at: runAt,
        priority: 2,
        max_attempts: 3,
        flags: { f: true },
      },
      { id: "2", task_identifier: "greet", payload: { n: 2 }, key: "k", priority: 0, max_attempts: 25, flags: null },
    ]);
  });

  test("addJobs of several tasks", async () => {
    const { db, utils } = await open();
    const specs = Array.from({ length: 40 }, (_, index) => ({ identifier: `t${index % 4}`, payload: { index } }));
    const rows = await utils.addJobs(specs);
    const stored = new Map((await db.jobs()).map((job) => [job.id, job.task_identifier]));
    // The original names tasks by position although its rows come back in another order.
    if (isOurs) expect(rows.map(({ payload }) => payload)).toEqual(specs.map(({ payload }) => payload));
    expect(rows.every((row) => stored.get(row.id) === row.task_identifier)).toBe(isOurs);
  });

  test("no flags, and numbers as flags", async () => {
    const { db, utils } = await open();
    const added = [];
    for (const flags of [[], [7]] as unknown as string[][]) {
      added.push(await utils.addJob("greet", {}, { flags }));
      added.push(...(await utils.addJobs([{ identifier: "greet", payload: {}, flags }])));
    }
    const seven = { "7": true };
    expect(added.map(({ flags }) => flags)).toEqual([null, null, seven, seven]);
    expect((await db.jobs()).map(({ flags }) => flags)).toEqual([null, null, seven, seven]);
  });

  test("addJobs with the time preserved", async () => {
    const { utils } = await open();
    await utils.addJobs([{ identifier: "greet", payload: 1, jobKey: "k", runAt }]);
    const [kept] = await utils.addJobs([{ identifier: "greet", payload: 2, jobKey: "k", runAt: later }], true);
    expect(kept).toMatchObject({ id: "1", payload: 2, run_at: runAt, revision: 1 });
  });

  test("completeJobs, permanentlyFailJobs and rescheduleJobs leave alone what runs", async () => {
    const { db, utils } = await open();
    await utils.addJobs(Array.from({ length: 3 }, () => ({ identifier: "greet", payload: {}, runAt, maxAttempts: 5 })));
    await lock(db, "3");
    expect((await utils.permanentlyFailJobs(["1", "3"], "no")).map(comparable)).toMatchObject([
      { id: "1", attempts: 5, last_error: "no", is_available: false },
    ]);
    expect((await utils.permanentlyFailJobs(["1"])).map(comparable)).toMatchObject([
      { id: "1", last_error: "Manually marked as failed" },
    ]);
    const changes = { runAt: later, priority: 3, attempts: 2, maxAttempts: 6 };
    expect((await utils.rescheduleJobs(["1", "3"], changes)).map(comparable)).toMatchObject([
      { id: "1", run_at: later, priority: 3, attempts: 2, max_attempts: 6, last_error: "Manually marked as failed" },
    ]);
    expect((await utils.completeJobs(["1", "2", "3"])).map(({ id }) => id).sort()).toEqual(["1", "2"]);
    expect((await db.jobs()).map(({ id }) => id)).toEqual(["3"]);
  });

  test("rescheduleJobs with a text as time, and with zeros", async () => {
    const { utils } = await open();
    await utils.addJob("greet", {}, { priority: 5, runAt });
    const [moved] = await utils.rescheduleJobs(["1"], { runAt: later.toISOString() });
    expect(moved).toMatchObject({ run_at: later, priority: 5 });
    const [zeroed] = await utils.rescheduleJobs(["1"], { priority: 0 });
    // The original takes zero for nothing.
    expect(zeroed?.priority).toBe(isOurs ? 0 : 5);
  });

  test("forceUnlockWorkers", async () => {
    const { db, utils } = await open();
    await utils.addJob("greet", {});
    await lock(db, "1");
    await utils.forceUnlockWorkers(["pool-2"]);
    expect((await db.job("1"))?.locked_by).toBe("pool-1");
    expect(await utils.forceUnlockWorkers(["pool-1"])).toBeUndefined();
    expect((await db.job("1"))?.locked_by).toBeNull();
  });

  test.each([
    ["nothing", undefined, ["greet", "old", "wave"], ["1", "2"], ["used"]],
    // A difference on purpose: the names of tasks go only when that is asked for.
    ["an empty object", {}, isOurs ? ["greet", "old", "wave"] : ["greet", "wave"], ["1", "2"], ["used"]],
    ["names to keep", { taskIdentifiersToKeep: ["old"] }, ["greet", "old", "wave"], ["1", "2"], ["used"]],
    ["one task", { tasks: ["DELETE_PERMAFAILED_JOBS"] }, ["greet", "old", "wave"], ["2"], ["unused", "used"]],
    [
      "all tasks",
      { tasks: ["GC_TASK_IDENTIFIERS", "GC_JOB_QUEUES", "DELETE_PERMAFAILED_JOBS"] },
      ["wave"],
      ["2"],
      ["used"],
    ],
  ])("cleanup with %s", async (_, options, tasks, jobs, queues) => {
    const { db, utils } = await open();
    await utils.addJob("greet", {}, { queueName: "used" });
    await utils.addJob("wave", {}, { queueName: "used" });
    await utils.addJob("old", {}, { queueName: "unused" });
    await utils.completeJobs(["3"]);
    await utils.permanentlyFailJobs(["1"]);
    await utils.cleanup(options as ours.CleanupOptions | undefined);
    const names = await db.query("select identifier from graphile_worker._private_tasks order by 1");
    expect(names.map(({ identifier }) => identifier)).toEqual(tasks);
    expect((await db.jobs()).map(({ id }) => id)).toEqual(jobs);
    const left = await db.query("select queue_name from graphile_worker._private_job_queues order by 1");
    expect(left.map(({ queue_name }) => queue_name)).toEqual(queues);
  });

  test("quickAddJob installs the schema", async () => {
    const empty = await freshDatabase({ migrated: false });
    const { quickAddJob } = isOurs ? ours : await loadOriginal("0.18");
    const { id } = await quickAddJob({ connectionString: empty.url }, "greet", {});
    expect(await empty.job(id)).toMatchObject({ task_identifier: "greet" });
  });

  test("withPgClient, migrate and quickAddJob", async () => {
    const { db, utils } = await open();
    const rows = await utils.withPgClient(async (client) => (await client.query("select 1 as one")).rows);
    expect(rows).toEqual([{ one: 1 }]);
    await utils.migrate();
    const { quickAddJob } = isOurs ? ours : await loadOriginal("0.18");
    const job = await quickAddJob({ connectionString: db.url }, "greet", { a: 1 }, { jobKey: "quick" });
    expect(job).toMatchObject({ task_identifier: "greet", payload: { a: 1 }, key: "quick" });
  });

  test("useNodeTime and a schema through a preset", async () => {
    const { utils } = await open({ preset: { worker: { useNodeTime: true, schema: "graphile_worker" } } });
    const before = Date.now();
    const job = await utils.addJob("greet", {});
    expect(job.run_at.getTime()).toBeGreaterThanOrEqual(before);
    expect(job.run_at.getTime()).toBeLessThanOrEqual(Date.now());
  });
});
