import { expect, test } from "vitest";
import { makeAddBatchJob } from "../../src/client/add-batch-job.ts";
import { makeAddJob } from "../../src/client/add-job.ts";
import { makeAddJobs } from "../../src/client/add-jobs.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { sharedDatabase } from "../support/shared-database.ts";

const database = sharedDatabase();
const open = () => poolDatabase(database().pool, { schema: "graphile_worker", preparedStatements: true });
const settings = { useNodeTime: false };

test("rows come back in the order of the specs, each with the name of its own task", async () => {
  const addJobs = makeAddJobs(open(), settings);
  await addJobs([{ identifier: "order-3", payload: "old", jobKey: "order-30" }]);
  const specs = Array.from({ length: 40 }, (_, index) => ({
    identifier: `order-${index % 4}`,
    payload: { index },
    ...(index % 3 === 0 && { jobKey: `order-${index}` }),
    priority: 40 - index,
  }));
  const rows = await addJobs(specs);
  expect(rows.map((row) => [row.task_identifier, row.payload, row.key, row.priority])).toEqual(
    specs.map((spec) => [spec.identifier, spec.payload, spec.jobKey ?? null, spec.priority]),
  );
  for (const row of rows) expect((await database().job(row.id))?.task_identifier).toBe(row.task_identifier);
});

test("everything that is said reaches the row", async () => {
  const runAt = new Date("2031-02-03T04:05:06.789Z");
  const spec = {
    identifier: "all",
    payload: { a: 1 },
    queueName: "q",
    runAt,
    priority: 0,
    maxAttempts: 1,
    jobKey: "all",
  };
  const [row] = await makeAddJobs(open(), settings)([{ ...spec, flags: ["f"] }]);
  expect(row).toMatchObject({ run_at: runAt, priority: 0, max_attempts: 1, key: "all", flags: { f: true } });
  expect(row?.job_queue_id).not.toBeNull();
});

test("the second argument preserves the time of keyed jobs", async () => {
  const addJobs = makeAddJobs(open(), settings);
  const runAt = new Date("2031-01-01T00:00:00Z");
  const later = new Date("2032-01-01T00:00:00Z");
  await addJobs([{ identifier: "t", payload: 1, jobKey: "keep", runAt }]);
  const [kept] = await addJobs([{ identifier: "t", payload: 2, jobKey: "keep", runAt: later }], true);
  expect(kept).toMatchObject({ payload: 2, run_at: runAt });
  const [moved] = await addJobs([{ identifier: "t", payload: 3, jobKey: "keep", runAt: later }]);
  expect(moved).toMatchObject({ payload: 3, run_at: later });
});

test("no jobs is no job", async () => {
  expect(await makeAddJobs(open(), settings)([])).toEqual([]);
});

test("all of them, or none", async () => {
  const addJobs = makeAddJobs(open(), settings);
  await database().query("alter table graphile_worker._private_jobs add constraint no_1313 check (priority <> 1313)");
  const specs = [1312, 1313, 1314].map((priority) => ({ identifier: "all-or-none", payload: {}, priority }));
  await expect(addJobs(specs)).rejects.toMatchObject({ code: "23514" });
  expect((await database().jobs()).filter((job) => job.task_identifier === "all-or-none")).toEqual([]);
});

test("a batch is one job, and with a key later items join those that wait", async () => {
  const addBatchJob = makeAddBatchJob(makeAddJob(open(), settings));
  const first = await addBatchJob("mail", [{ to: "a" }, { to: "b" }], { jobKey: "mail", queueName: "mail" });
  expect(first).toMatchObject({ payload: [{ to: "a" }, { to: "b" }], task_identifier: "mail" });
  const second = await addBatchJob("mail", [{ to: "c" }], { jobKey: "mail" });
  expect(second).toMatchObject({ id: first.id, payload: [{ to: "a" }, { to: "b" }, { to: "c" }] });
});

test("with useNodeTime jobs without a time get this process's", async () => {
  const before = Date.now();
  const [row] = await makeAddJobs(open(), { useNodeTime: true })([{ identifier: "t", payload: {} }]);
  expect(row!.run_at.getTime()).toBeGreaterThanOrEqual(before);
  expect(row!.run_at.getTime()).toBeLessThanOrEqual(Date.now());
});

test("each job may have a mode of its own, and the second argument decides for the others", async () => {
  const addJobs = makeAddJobs(open(), settings);
  const [early, late] = [new Date("2031-01-01T00:00:00Z"), new Date("2032-01-01T00:00:00Z")];
  const modes = [undefined, "replace", "preserve_run_at"] as const;
  const specs = (runAt: Date, prefix: string) =>
    modes.map((mode, index) => ({
      identifier: "modes",
      payload: {},
      runAt,
      jobKey: `${prefix}-${index}`,
      ...(mode && { jobKeyMode: mode }),
    }));
  for (const [preserve, expected] of [
    [undefined, [late, late, early]],
    [true, [early, late, early]],
  ] as const) {
    const prefix = `modes-${preserve}`;
    await addJobs(specs(early, prefix), preserve);
    const rows = await addJobs(specs(late, prefix), preserve);
    expect(rows.map(({ run_at }) => run_at)).toEqual(expected);
    expect(rows.map(({ revision }) => revision)).toEqual([1, 1, 1]);
  }
});
