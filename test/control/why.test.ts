import { expect, test } from "vitest";
import { SnoozeError } from "../../src/job-errors.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";
import { stubbornTask, utilsOf } from "./kit.ts";

test("why says of a cancelled job who cancelled it, when and why", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const waiting = await utils.addJob("other", {});
  await utils.cancelJobs([waiting.id], { reason: "changed my mind" });
  const gone = await utils.explainJob(waiting.id);
  expect(gone.state).toBeNull();
  expect(gone.reasons).toMatchObject([
    { kind: "cancelled", reason: "changed my mind", isGone: true, hasSucceeded: false },
  ]);
  expect(gone.reasons[0]!.message).toMatch(
    /^Job 1 \(other\) was cancelled at .* by postgres.* Reason: changed my mind\. Cancelled jobs are gone\.$/,
  );

  const held = heldTask();
  const worker = await startWorker(db, { t: held.task });
  const running = await utils.addJob("t", {});
  await held.begun(1);
  await utils.cancelJobs([running.id]);
  const told = await utils.explainJob(running.id);
  expect(told.reasons.map(({ kind }) => kind)).toEqual(["cancelled", "locked"]);
  expect(told.reasons[0]!.message).toMatch(/signal has aborted, and it never runs again/);
  const { jobs } = await utils.listJobs({ state: "running" });
  expect(jobs[0]).toMatchObject({ id: running.id, cancelled_at: expect.any(Date) });
  expect((await utils.getJobStats()).controlled).toEqual({ cancelling: 1, cancelled: 1, snoozed: 0, overrunning: 0 });
  await worker.nth("job:cancelling");
  held.releaseAll();
  await worker.completed(1);
  expect((await utils.explainJob(running.id)).reasons[0]).toMatchObject({ kind: "cancelled", hasSucceeded: true });
});

test("why, list and show say how often a job was snoozed", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const snooze = (): never => {
    throw new SnoozeError("1h");
  };
  const worker = await startWorker(db, { t: snooze });
  const { id } = await utils.addJob("t", {});
  await worker.completed(1);
  // A worker without recovery is known by the connection that listens, and may run a job before it does.
  await worker.nth("pool:listen:success");
  const explained = await utils.explainJob(id);
  expect(explained.reasons.map(({ kind }) => kind)).toEqual(["snoozed", "scheduled"]);
  expect(explained.reasons[0]!.message).toMatch(/Its task has put it off once, last at/);
  expect(await utils.getJob(id)).toMatchObject({ snoozes: 1 });
  expect((await utils.getJobStats()).controlled.snoozed).toBe(1);
});

test("why, workers and doctor show a job that overruns its timeout", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const stuck = stubbornTask();
  const options = { stuck: { timeout: 30, abortGrace: 1, backoff: { type: "fixed", delay: "1h" } } } as const;
  const worker = await startWorker(db, { stuck: stuck.task }, { taskOptions: options });
  const { id } = await utils.addJob("stuck", {}, { queueName: "q" });
  const next = await utils.addJob("stuck", {}, { queueName: "q" });
  await worker.nth("job:overrun");
  await worker.completed(1);
  await until(async () => (await utils.getJobStats()).controlled.overrunning === 1);

  const own = await utils.explainJob(id);
  expect(own.reasons.map(({ kind }) => kind)).toContain("overrunning");
  const behind = await utils.explainJob(next.id);
  expect(behind.reasons.find(({ kind }) => kind === "overrunning")?.message).toMatch(
    new RegExp(`Job ${id} \\(stuck\\) has been running since .* in ${worker.pool().id}`),
  );
  const found = (await utils.listWorkers()).find(({ overruns }) => overruns === 1);
  expect(found?.id).toBe(worker.pool().id);
  const checkUps = await utils.examineHealth();
  expect(checkUps.find(({ name }) => name === "overruns")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(/run on after their timeout.*'stuck'/),
  });
});

test("doctor tells of cancelled jobs that run on where nobody obeys", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { id } = await utils.addJob("t", {});
  await db.query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'worker-original' where id = $1",
    [id],
  );
  await utils.cancelJobs([id]);
  await db.query("update graphile_worker._hathi_job_cancellations set cancelled_at = now() - interval '1 minute'");
  const checkUps = await utils.examineHealth();
  expect(checkUps.find(({ name }) => name === "cancels")).toMatchObject({
    status: "warning",
    message: expect.stringMatching(/1 jobs were cancelled .*worker-original.*Graphile Worker's/),
  });
});
