import { expect, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { freeRatedSuspects } from "../../src/db/statements/limits.ts";
import { CancelJobError, SnoozeError } from "../../src/job-errors.ts";
import { utilsOf } from "../control/kit.ts";
import { quickly } from "../recovery/kit.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";
import { checkCommits } from "./commit-check.ts";

vi.setConfig({ testTimeout: 60_000 });

const isFirst = ({ job }: { job: { attempts: number; last_error: string | null } }): boolean =>
  job.attempts === 1 && job.last_error === null;

test("however a job ends, its place is free again, and never more are taken", async () => {
  const db = await freshDatabase();
  const check = await checkCommits(db, [{ tasks: ["sync"], places: 2 }]);
  const utils = await utilsOf(db);
  const snoozed = new Set<string>();
  const sync = async (
    payload: unknown,
    helpers: { job: { id: string; attempts: number; last_error: string | null }; abortPromise: Promise<void> },
  ) => {
    const { end } = payload as { end?: string };
    if (end === "fail" && isFirst(helpers)) throw new Error("not yet");
    if (end === "cancel") throw new CancelJobError("no need");
    if (end === "cancelled") await helpers.abortPromise;
    if (end === "snooze" && !snoozed.has(helpers.job.id)) {
      snoozed.add(helpers.job.id);
      throw new SnoozeError(20);
    }
  };
  const options = {
    concurrency: 4,
    taskOptions: { sync: { concurrency: 2, backoff: { type: "fixed", delay: 1 } } },
  } as const;
  const pools = [await startWorker(db, { sync }, options), await startWorker(db, { sync }, options)];
  for (let round = 0; round < 4; round++) {
    for (const end of ["fail", "cancel", "snooze", "well"]) {
      await utils.addJob("sync", { end }, { ...(round % 2 === 0 && { queueName: "q" }) });
    }
    await utils.addBatchJob("sync", [1, 2, 3], { jobKey: `batch ${round}` });
    const { id } = await utils.addJob("sync", { end: "cancelled" });
    await until(async () => (await db.job(id))?.locked_at != null, { what: "it runs" });
    await utils.cancelJobs([id]);
  }
  await until(async () => (await db.jobs()).length === 0, { what: "every job has ended", withinMs: 40_000 });
  expect(await check.above()).toEqual([]);
  expect(await check.most()).toEqual([2]);
  for (const { runner } of pools) await runner.stop();
});

test("each start uses a token, also of a retry and after a snooze; a cancelled job that waits uses none", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const starts: string[] = [];
  const call = ({ name, times }: { name: string; times: number }) => {
    starts.push(name);
    if (starts.filter((one) => one === name).length <= times)
      throw name === "snooze" ? new SnoozeError(10) : new Error(name);
  };
  const waiting = await utils.addJob(
    "call",
    { name: "cancelled", times: 0 },
    { runAt: new Date(Date.now() + 3_600_000) },
  );
  await startWorker(
    db,
    { call },
    {
      taskOptions: { call: { rateLimit: { limit: 1, period: "1h", burst: 4 }, backoff: { type: "fixed", delay: 1 } } },
    },
  );
  await utils.cancelJobs([waiting.id]);
  await utils.addJob("call", { name: "fail", times: 2 });
  await until(() => starts.length === 3);
  await utils.addJob("call", { name: "snooze", times: 1 });
  await until(() => starts.length === 5);
  const last = await utils.addJob("call", { name: "last", times: 0 });
  const { reasons } = await utils.explainJob(last.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", by: "rate", limit: "call" });
  await until(async () => (await db.jobs()).length === 1, { what: "only the last one is left" });
  expect(starts).toEqual(["fail", "fail", "fail", "snooze", "snooze"]);
  expect(await db.job(last.id)).toMatchObject({ attempts: 0, locked_at: null });
});

/** As the recovery parks a job whose worker died, until `release`. */
async function park(db: TestDatabase, task: string): Promise<void> {
  await db.query(
    `with parked as (
      update graphile_worker._private_jobs as job set locked_by = 'hathi-recovery', locked_at = now(), attempts = 1
      from graphile_worker._private_tasks as task where task.id = job.task_id and task.identifier = $1 returning job.id
    )
    insert into graphile_worker._hathi_job_crashes (job_id, attempt, crashes, deaths, since, release_at)
    select id, 1, 0, 1, now(), now() + interval '1 hour' from parked`,
    [task],
  );
}

const release = "update graphile_worker._hathi_job_crashes set release_at = now()";

test("jobs that the recovery has parked keep their places, and give them back when they have run", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const check = await checkCommits(db, [{ tasks: ["sync"], places: 2 }]);
  await utils.addJobs([1, 2].map((n) => ({ identifier: "sync", payload: { n } })));
  await park(db, "sync");
  const held = heldTask();
  const ran: string[] = [];
  await startWorker(
    db,
    { sync: held.task, free: (_payload, { job }) => void ran.push(job.id) },
    { concurrency: 5, pollInterval: 200, recovery: quickly, taskOptions: { sync: { concurrency: 2 } } },
  );
  const third = await utils.addJob("sync", { n: 3 });
  await utils.addJob("free", {});
  await until(() => ran.length === 1);
  expect(held.started).toEqual([]);
  const { reasons } = await utils.explainJob(third.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", by: "concurrency", places: 2, taken: 2 });
  expect(reasons[0]!.message).toContain("in hathi-recovery");
  await db.query(release);
  await held.begun(1);
  held.releaseAll();
  await until(async () => (await db.jobs()).length === 0, { what: "all have run", withinMs: 40_000 });
  expect(held.started.map(({ payload }) => (payload as { n: number }).n).sort()).toEqual([1, 2, 3]);
  expect(await check.above()).toEqual([]);
});

test("a parked job of a task with a rate waits for a token like any other", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const parked = await utils.addJob("call", { name: "parked" });
  await park(db, "call");
  const starts: string[] = [];
  const ran: string[] = [];
  await startWorker(
    db,
    { call: ({ name }: { name: string }) => void starts.push(name), free: () => void ran.push("free") },
    { pollInterval: 200, recovery: quickly, taskOptions: { call: { rateLimit: { limit: 1, period: "1h" } } } },
  );
  await utils.addJob("call", { name: "first" });
  await until(() => starts.length === 1);
  await db.query(release);
  await until(async () => (await db.job(parked.id))!.locked_at === null, { what: "it is back in line" });
  await utils.addJob("free", {});
  await until(() => ran.length === 1);
  expect((await utils.explainJob(parked.id)).reasons[0]).toMatchObject({ kind: "limited", by: "rate", limit: "call" });
  expect(starts).toEqual(["first"]);
  await utils.setLimit("call", { limit: 1_000, period: "1s" });
  await until(() => starts.length === 2);
  expect(starts).toEqual(["first", "parked"]);
});

test("parked jobs of a task with a rate run again one at a time, so that the one that kills its worker is found", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await utils.addJobs([1, 2, 3].map((n) => ({ identifier: "call", payload: { n } })));
  await park(db, "call");
  await db.query("update graphile_worker._private_jobs set attempts = 0"); // a death gives the attempt back
  // The next one would start when its probation is over.
  await db.query("update graphile_worker._hathi_job_crashes set deaths = 10, release_at = now()");
  const held = heldTask();
  await startWorker(
    db,
    { call: held.task },
    {
      concurrency: 5,
      pollInterval: 200,
      recovery: quickly,
      taskOptions: { call: { rateLimit: { limit: 1_000, period: "1s" } } },
    },
  );
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: false });
  for (let n = 1; n <= 3; n++) {
    await held.begun(n);
    expect(await database.run(freeRatedSuspects, { taskIds: [1] })).toEqual([{ freed: 0, rated: [1] }]);
    expect(held.started).toHaveLength(n);
    held.release(n - 1);
  }
  await until(async () => (await db.jobs()).length === 0, { what: "all have run" });
});
