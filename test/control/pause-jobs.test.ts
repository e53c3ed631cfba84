import { expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";
import { cancellationOf, utilsOf } from "./kit.ts";

vi.setConfig({ testTimeout: 120_000 });

const patient = { withinMs: 60_000 };

async function queueRow(db: TestDatabase): Promise<{ locked_at: unknown; locked_by: string | null } | undefined> {
  const [row] = await db.query<{ locked_at: unknown; locked_by: string | null }>(
    "select locked_at::text as locked_at, locked_by from graphile_worker._private_job_queues where queue_name = 'q'",
  );
  return row;
}

test.each([
  ["task", { task: "work" }],
  ["queue", { queue: "q" }],
  ["everything", { all: true }],
] as const)(
  "jobs of a paused %s can be cancelled, rescheduled, retried, removed and failed, and do not start",
  async (_name, target) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    await utils.pause(target);
    const worker = await startWorker({ connectionString: db.url, pollInterval: 100 });
    const spec = { queueName: "q" };
    const cancelled = await utils.addJob("work", {}, spec);
    const moved = await utils.addJob("work", {}, { ...spec, runAt: new Date(Date.now() + 3_600_000) });
    const retried = await utils.addJob("work", {}, spec);
    const dead = await utils.addJob("work", {}, spec);
    await utils.addJob("work", {}, { ...spec, jobKey: "k" });

    expect(await utils.cancelJobs([cancelled.id])).toMatchObject({ cancelled: [{ id: cancelled.id }], stopping: [] });
    expect(await cancellationOf(db, cancelled.id)).toMatchObject({ outcome: "cancelled" });
    expect(await utils.rescheduleJobs([moved.id], { runAt: new Date(0) })).toHaveLength(1);
    await utils.permanentlyFailJobs([retried.id, dead.id], "by hand");
    expect(await utils.rescheduleJobs([retried.id], { attempts: 0, runAt: new Date(0) })).toHaveLength(1);
    expect(await utils.removeJob("k")).not.toBeNull();
    expect((await utils.explainJob(moved.id)).reasons.map(({ kind }) => kind)).toContain("paused");

    // What nobody paused shows that the worker looks for jobs.
    if (!("all" in target)) {
      const [other] = await utils.addJobs([{ identifier: "toil", payload: {} }]);
      await until(() => worker.started().includes(other!.id), patient);
    }
    expect(worker.started().filter((id) => [moved.id, retried.id, cancelled.id].includes(id))).toEqual([]);
    await utils.resume(target);
    await until(async () => (await db.jobs()).length === 1, { what: "all but the failed one are done", ...patient });
    await worker.stop();
    expect(
      worker
        .started()
        .filter((id) => [moved.id, retried.id].includes(id))
        .toSorted(),
    ).toEqual([moved.id, retried.id].toSorted());
    expect(await db.job(dead.id)).toBeDefined();
  },
);

test("a paused queue whose worker is killed stays held, and goes on one job at a time when it is resumed", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const recovery = { heartbeatInterval: 100, sweepThreshold: 60_000 };
  const first = await startWorker({ connectionString: db.url, pollInterval: 100, recovery });
  const held = await utils.addJob("hold", {}, { queueName: "q" });
  await until(() => first.holds().includes(held.id), patient);
  const others = await utils.addJobs([1, 2, 3].map(() => ({ identifier: "work", queueName: "q", payload: { ms: 5 } })));
  await utils.pause({ queue: "q" });
  const owner = (await db.job(held.id))!.locked_by;
  first.kill("SIGKILL");
  await first.ended;
  await utils.sweepStaleWorkers({ sweepThreshold: 10, recoveryDelay: 0, crashGrace: 0 });
  await until(async () => (await db.job(held.id))?.locked_by !== owner, { what: "it is recovered", ...patient });
  expect((await queueRow(db))?.locked_at).toBe("infinity");

  const heirs = await Promise.all(
    [1, 2].map(() =>
      startWorker({ connectionString: db.url, pollInterval: 100, recovery: { ...recovery, sweepInterval: 200 } }),
    ),
  );
  const { id: seen } = await utils.addJob("toil", {});
  await until(() => heirs.some((heir) => heir.started().includes(seen)), patient);
  expect(heirs.flatMap((heir) => heir.started())).toEqual([seen]);
  expect((await queueRow(db))?.locked_at).toBe("infinity");

  await utils.resume({ queue: "q" });
  await until(() => heirs.some((heir) => heir.holds().includes(held.id)), {
    what: "the recovered job runs",
    ...patient,
  });
  expect(heirs.flatMap((heir) => heir.started()).filter((id) => id !== seen)).toEqual([held.id]);
  for (const heir of heirs) heir.release();
  await until(async () => (await db.jobs()).length === 0, patient);
  for (const heir of heirs) await heir.stop();
  const runs = heirs.flatMap((heir) => heir.runs()).filter(({ queueId }) => queueId !== null);
  expect(runs.map(({ id }) => id).toSorted()).toEqual([held.id, ...others.map(({ id }) => id)].toSorted());
  const inOrder = runs.toSorted((a, b) => a.startedAt - b.startedAt);
  for (const [n, run] of inOrder.entries()) {
    if (n > 0) expect(run.startedAt).toBeGreaterThanOrEqual(inOrder[n - 1]!.endedAt);
  }
});

test("a recovered job that is parked with its queue is not adopted while the queue is paused", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const { id } = await utils.addJob("work", {}, { queueName: "q" });
  await db.query(
    `insert into graphile_worker._hathi_job_crashes (job_id, attempt, crashes, deaths, since, release_at)
     values ($1, 1, 1, 1, now(), now())`,
    [id],
  );
  await db.query("update graphile_worker._private_jobs set locked_by = 'hathi-recovery', locked_at = now()");
  await db.query("update graphile_worker._private_job_queues set locked_by = 'hathi-recovery', locked_at = now()");
  await utils.pause({ queue: "q" });
  await db.query(
    "insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values ('heir', now(), '{}')",
  );
  const adopt = (): Promise<object[]> =>
    db.query(
      `select id from graphile_worker._hathi_adopt_suspect(
         'heir', (select array_agg(id) from graphile_worker._private_tasks), null, null, null
       )`,
    );
  expect(await adopt()).toEqual([]);
  await utils.resume({ queue: "q" });
  expect(await queueRow(db)).toMatchObject({ locked_by: "hathi-recovery" });
  expect(await adopt()).toEqual([{ id }]);
});
