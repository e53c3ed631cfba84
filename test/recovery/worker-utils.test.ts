import { expect, onTestFinished, test } from "vitest";
import type { WorkerUtilsOptions } from "../../src/config/options.ts";
import { INFRASTRUCTURE_RESILIENT_FLAG, makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { addJob } from "./kit.ts";

async function utilsFor(database: TestDatabase, options: WorkerUtilsOptions = {}): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({
    connectionString: database.url,
    logger: rememberingLogger().logger,
    ...options,
  });
  onTestFinished(() => utils.release());
  return utils;
}

async function deadWorker(database: TestDatabase, secondsAgo: number): Promise<string> {
  const id = await addJob(database, "task");
  await database.query(
    `insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata)
      values ('dead', now() - $1 * interval '1 second', '{"pid": 7}')`,
    [secondsAgo],
  );
  await database.query("update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1");
  return id;
}

test("a sweep by hand takes its thresholds from its options, else from the option recovery, else from the defaults", async () => {
  const database = await freshDatabase();
  const id = await deadWorker(database, 20);
  const plain = await utilsFor(database);
  const strict = await utilsFor(database, {
    preset: { worker: { recovery: { sweepThreshold: 15_000, heartbeatInterval: 1_000 } } },
  });
  expect((await plain.sweepStaleWorkers()).workerIds).toEqual([]);
  expect((await plain.sweepStaleWorkers({ sweepThreshold: 30_000 })).workerIds).toEqual([]);
  expect((await plain.sweepStaleWorkers({ sweepThreshold: 10_000, dryRun: true })).workerIds).toEqual(["dead"]);
  expect((await strict.sweepStaleWorkers({ dryRun: true })).jobs).toMatchObject([{ id, task: "task" }]);
  expect(await database.job(id)).toMatchObject({ locked_by: "dead" });
  expect(await plain.sweepStaleWorkers({ sweepThreshold: 10_000, recoveryDelay: 0 })).toMatchObject({
    recoveredCount: 1,
  });
  expect(await database.job(id)).toMatchObject({ locked_by: null, attempts: 0 });
  await expect(plain.sweepStaleWorkers({ sweepThreshold: -1 })).rejects.toThrow(/recovery\.sweepThreshold/);
});

test("active workers are listed with how they are by the threshold that is asked for", async () => {
  const database = await freshDatabase();
  await deadWorker(database, 60);
  const utils = await utilsFor(database);
  await database.query("select graphile_worker.worker_heartbeat('alive')");
  const workers = await utils.listActiveWorkers(30_000);
  expect(workers.map(({ workerId, isStale }) => ({ workerId, isStale }))).toEqual([
    { workerId: "alive", isStale: false },
    { workerId: "dead", isStale: true },
  ]);
  expect(workers[1]).toMatchObject({
    metadata: { pid: 7 },
    lastHeartbeatAt: expect.any(Date),
    startedAt: expect.any(Date),
  });
  expect((await utils.listActiveWorkers()).every(({ isStale }) => !isStale)).toBe(true);
});

test("hooks of the utils decide and are told", async () => {
  const database = await freshDatabase();
  const id = await deadWorker(database, 1_000);
  const told: unknown[] = [];
  const utils = await utilsFor(database, {
    hooks: {
      jobRecovery: ({ job }) => {
        told.push(["asked", job.id]);
        return { reschedule: { runAt: new Date("2100-01-01Z"), attempts: 3 } };
      },
      jobInterrupted: ({ job, reason }) => void told.push([job.id, reason]),
      workerRecovered: ({ workerId, deadWorkerIds, jobsRecovered }) =>
        void told.push([workerId, deadWorkerIds, jobsRecovered]),
    },
  });
  expect((await utils.sweepStaleWorkers()).jobs).toMatchObject([{ id, outcome: "rescheduled" }]);
  expect(await database.job(id)).toMatchObject({ attempts: 3, run_at: new Date("2100-01-01Z") });
  expect(told).toEqual([
    ["asked", id],
    [id, "workerCrashed"],
    ["worker_utils", ["dead"], 1],
  ]);
});

test("what counts as silent follows the configured sweepThreshold, and a parked job is explained", async () => {
  const database = await freshDatabase();
  const utils = await makeWorkerUtils({
    connectionString: database.url,
    preset: { worker: { recovery: { sweepThreshold: 60_000 } } },
  });
  onTestFinished(() => utils.release());
  const { id } = await utils.addJob("task", {}, { flags: [INFRASTRUCTURE_RESILIENT_FLAG] });
  await database.query(
    "insert into graphile_worker._private_workers (id, last_heartbeat_at) values ('quiet', now() - interval '90 s')",
  );
  const lockFor = (owner: string): Promise<unknown> =>
    database.query("update graphile_worker._private_jobs set locked_by = $1, locked_at = now()", [owner]);
  await lockFor("quiet");
  expect((await utils.explainJob(id)).reasons[0]?.message).toMatch(/seems dead/);
  expect(await utils.listWorkers()).toMatchObject([{ id: "quiet", life: "silent" }]);
  await lockFor("hathi-recovery");
  expect((await utils.explainJob(id)).reasons[0]?.message).toMatch(/was running when its worker died/);
});
