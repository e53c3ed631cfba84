import { expect, test } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { recorder, startRunner } from "./kit.ts";

test("a worker's life is told from before the first claim to after the last write", async () => {
  const db = await freshDatabase();
  const told: string[] = [];
  const context = { name: "state" };
  const runner = await startRunner(
    db,
    { t: () => undefined },
    {
      concurrency: 3,
      context,
      hooks: {
        workerInit: (ctx) => {
          expect(ctx).toMatchObject({ schema: "graphile_worker", concurrency: 3, context });
          told.push("init");
        },
        workerStart: async (ctx) => {
          const { rows } = await ctx.withPgClient((client) =>
            client.query("select identifier from graphile_worker._private_tasks"),
          );
          expect(rows).toEqual([{ identifier: "t" }]);
          expect(ctx.workerId).toMatch(/^pool-/);
          told.push("start");
        },
        workerShutdown: async (ctx) => {
          expect(ctx).toMatchObject({ reason: "graceful", error: null, context });
          const { rows } = await ctx.withPgClient((client) =>
            client.query("select count(*)::int as n from graphile_worker._private_jobs"),
          );
          expect(rows).toEqual([{ n: 0 }]);
          told.push("shutdown");
        },
      },
    },
  );
  await until(() => told.includes("start"));
  await runner.addJob("t", {});
  await until(async () => (await db.jobs()).length === 0);
  await runner.stop();
  expect(told).toEqual(["init", "start", "shutdown"]);
});

test("jobs are told of as fetched, started and complete, the last when they are gone from the database", async () => {
  const db = await freshDatabase();
  const seen = recorder("jobFetch", "jobStart");
  const gone = deferred<unknown>();
  const runner = await startRunner(
    db,
    { t: () => undefined },
    {
      hooks: {
        ...seen.hooks,
        jobComplete: async ({ job, workerId, durationMs }) => {
          gone.resolve({ row: await db.job(job.id), id: job.id, workerId, lockedBy: job.locked_by, durationMs });
        },
      },
    },
  );
  const job = await runner.addJob("t", { a: 1 });
  expect(await gone.promise).toEqual({
    row: undefined,
    id: job.id,
    workerId: expect.stringMatching(/^pool-/),
    lockedBy: expect.stringMatching(/^pool-/),
    durationMs: expect.any(Number),
  });
  expect(seen.names()).toEqual(["jobFetch", "jobStart"]);
  expect(seen.of("jobFetch")[0]).toMatchObject({ job: { id: job.id, payload: { a: 1 } } });
});

test("a failure that will be tried again, and one that will not, are told of with the error, once they are written", async () => {
  const db = await freshDatabase();
  const written: unknown[] = [];
  const note = (name: string) => async (ctx: { job: { id: string }; error: Error }) => {
    const row = await db.job(ctx.job.id);
    written.push([name, ctx.error.message, row?.last_error, row?.locked_by]);
  };
  await db.query("select graphile_worker.add_job('bad', max_attempts => 1)");
  await db.query("select graphile_worker.add_job('bad', max_attempts => 2)");
  await runOnce(
    {
      connectionString: db.url,
      logger: rememberingLogger().logger,
      noHandleSignals: true,
      hooks: { jobFail: note("fail"), jobPermanentlyFail: note("permanently"), jobComplete: note("complete") as never },
    },
    {
      bad: () => {
        throw new Error("boom");
      },
    },
  );
  await until(() => written.length === 2);
  expect(written.toSorted()).toEqual([
    ["fail", "boom", "boom", null],
    ["permanently", "boom", "boom", null],
  ]);
});

test("a job that was returned at the end of the grace period is reported as interrupted, once that is written", async () => {
  const db = await freshDatabase();
  const started = deferred();
  const interrupted = deferred<unknown>();
  const runner = await startRunner(
    db,
    {
      slow: (_, { abortPromise }) => {
        started.resolve();
        return abortPromise;
      },
    },
    {
      shutdownGracePeriod: 10,
      gracefulShutdownAbortTimeout: 60_000,
      hooks: {
        jobInterrupted: async ({ job, reason }) => {
          const row = await db.job(job.id);
          interrupted.resolve([reason, row?.locked_by, row?.attempts, row?.last_error]);
        },
      },
    },
  );
  await runner.addJob("slow", {});
  await started.promise;
  await runner.stop();
  expect(await interrupted.promise).toEqual(["shutdown", null, 0, "Job recovered after worker interruption"]);
});

test("a job that a forceful shutdown failed is told of as failed, and the worker's end as forceful", async () => {
  const db = await freshDatabase();
  const started = deferred();
  const seen = recorder("jobFail", "jobInterrupted", "workerShutdown");
  const runner = await startRunner(
    db,
    {
      slow: (_, { abortPromise }) => {
        started.resolve();
        return abortPromise;
      },
    },
    { hooks: seen.hooks },
  );
  const job = await runner.addJob("slow", {});
  await started.promise;
  await runner.kill("out of patience");
  expect(seen.names()).toEqual(["jobFail", "workerShutdown"]);
  expect(seen.of("jobFail")[0]).toMatchObject({ job: { id: job.id }, error: { message: "out of patience" } });
  expect(seen.of("workerShutdown")[0]).toMatchObject({ reason: "forceful" });
  expect(await db.job(job.id)).toMatchObject({ last_error: "out of patience", locked_by: null });
});

test("a worker that cannot go on says so", async () => {
  const db = await freshDatabase();
  const seen = recorder("workerShutdown");
  const options = { connectionString: db.url, logger: rememberingLogger().logger, noHandleSignals: true };
  const end = runOnce({ ...options, hooks: seen.hooks }, {});
  await expect(end).rejects.toThrow("No runnable tasks!");
  expect(seen.of("workerShutdown")[0]).toMatchObject({
    reason: "error",
    error: { message: expect.stringContaining("No runnable tasks!") },
  });
});

test("the local queue reports its modes, what it got and what it returned", async () => {
  const db = await freshDatabase();
  const started = deferred();
  const seen = recorder(
    "localQueueInit",
    "localQueueSetMode",
    "localQueueGetJobsComplete",
    "localQueueReturnJobs",
    "localQueueRefetchDelayStart",
    "localQueueRefetchDelayExpired",
  );
  await db.query("select graphile_worker.add_job('slow') from generate_series(1, 3)");
  const runner = await startRunner(
    db,
    {
      slow: (_, { abortPromise }) => {
        started.resolve();
        return abortPromise;
      },
    },
    {
      gracefulShutdownAbortTimeout: 1,
      hooks: seen.hooks,
      preset: {
        worker: { localQueue: { size: 5, refetchDelay: { durationMs: 1, threshold: 3, maxAbortThreshold: 100 } } },
      },
    },
  );
  await started.promise;
  await seen.first("localQueueRefetchDelayExpired");
  await runner.stop();
  const workerId = expect.stringMatching(/^pool-/);
  expect(seen.of("localQueueInit")).toEqual([{ workerId, context: {} }]);
  expect(seen.of("localQueueSetMode")[0]).toMatchObject({ workerId, oldMode: "STARTING", newMode: "POLLING" });
  expect(seen.of("localQueueSetMode").at(-1)).toMatchObject({ newMode: "RELEASED" });
  expect(seen.of("localQueueGetJobsComplete")[0]).toMatchObject({ workerId, jobCount: 3 });
  expect(seen.of("localQueueReturnJobs")).toMatchObject([{ workerId, jobCount: 2 }]);
  expect(seen.of("localQueueRefetchDelayStart")[0]).toMatchObject({
    workerId,
    durationMs: expect.any(Number),
    threshold: 3,
    abortThreshold: expect.any(Number),
  });
});

test("the local queue tells when new jobs end its rest early", async () => {
  const db = await freshDatabase();
  const seen = recorder("localQueueRefetchDelayStart", "localQueueRefetchDelayAbort");
  const runner = await startRunner(
    db,
    { t: () => undefined },
    {
      hooks: seen.hooks,
      pollInterval: 60_000,
      preset: {
        worker: {
          localQueue: { size: 5, refetchDelay: { durationMs: 60_000, threshold: 3, maxAbortThreshold: 1 } },
        },
      },
    },
  );
  await seen.first("localQueueRefetchDelayStart");
  await until(async () => {
    await runner.addJob("t", {});
    return seen.of("localQueueRefetchDelayAbort").length > 0;
  });
  expect(seen.of("localQueueRefetchDelayAbort")[0]).toMatchObject({
    count: expect.any(Number),
    abortThreshold: expect.any(Number),
  });
});

test("an observer that throws, rejects or never ends harms no job, and is spoken of once", async () => {
  const db = await freshDatabase();
  const { logger, lines } = rememberingLogger();
  const done: unknown[] = [];
  const never = new Promise<void>(() => undefined);
  const runner = await startRunner(
    db,
    { t: (payload) => void done.push(payload) },
    {
      logger,
      hooks: {
        jobFetch: () => never,
        jobStart: [
          () => {
            throw new Error("thrown");
          },
          async () => {
            throw new Error("rejected");
          },
          () => never,
        ],
        jobComplete: () => never,
        workerStart: () => never,
      },
    },
  );
  for (let n = 0; n < 3; n++) await runner.addJob("t", n);
  await until(async () => (await db.jobs()).length === 0);
  await runner.stop();
  expect(done.toSorted()).toEqual([0, 1, 2]);
  const said = lines.filter(({ level }) => level === "error").map(({ message }) => message);
  expect(said).toEqual([
    "A hook 'jobStart' failed: thrown. This is logged once; jobs are not affected.",
    "A hook 'jobStart' failed: rejected. This is logged once; jobs are not affected.",
  ]);
});
