import { expect, test } from "vitest";
import type { LocalQueueOptions } from "../../../src/config/local-queue-options.ts";
import { freshDatabase } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { heldTask, type Recording, startPool, startWorker } from "../kit.ts";

const withLocalQueue = (localQueue: LocalQueueOptions, more: GraphileConfig.WorkerOptions = {}) => ({
  preset: { worker: { localQueue, ...more } },
});
const modes = ({ of }: Recording): string[] =>
  of("localQueue:setMode").map(({ oldMode, newMode }) => `${oldMode} > ${newMode}`);

test("size is how many jobs one claim takes", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 30)");
  const started = startPool(db, { t: held.task }, withLocalQueue({ size: 12 }));
  await held.begun(1);
  expect((await db.jobs()).filter(({ locked_by }) => locked_by === started.pool.id)).toHaveLength(12);
  const { jobs, localQueue } = await started.nth("localQueue:getJobs:complete");
  expect(jobs).toHaveLength(12);
  expect(localQueue.mode).toBe("WAITING");
  held.releaseAll();
  await started.completed(30);
});

test("its modes are said as the original says them", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 3)");
  const started = startPool(db, { t: () => undefined }, withLocalQueue({ size: 10 }));
  await started.completed(3);
  await started.nth("localQueue:getJobs:complete", 2);
  await started.pool.gracefulShutdown();
  expect(started.of("localQueue:init")).toHaveLength(1);
  expect(modes(started)).toEqual([
    "STARTING > POLLING",
    "POLLING > WAITING",
    "WAITING > POLLING",
    "POLLING > RELEASED",
  ]);
});

test("jobs that waited for longer than ttl are returned, though others move on", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 6)");
  const started = startPool(db, { t: held.task }, withLocalQueue({ size: 6, ttl: 300 }));
  await held.begun(1);
  const { jobs } = await started.nth("localQueue:returnJobs");
  expect(jobs).toHaveLength(5);
  expect(modes(started)).toContain("WAITING > TTL_EXPIRED");
  const left = await db.jobs();
  expect(left.filter(({ locked_by, attempts }) => locked_by === null && attempts === 0)).toHaveLength(5);
  held.releaseAll();
  await started.completed(6);
  expect(modes(started)).toContain("TTL_EXPIRED > POLLING");
});

test("a local queue that is full of one named queue does not keep the other slots idle", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  await db.query("select graphile_worker.add_job('slow', queue_name => 'q') from generate_series(1, 20)");
  const started = startPool(
    db,
    { slow: held.task, free: () => undefined },
    { concurrency: 3, ...withLocalQueue({ size: 5 }) },
  );
  await held.begun(1);
  await db.query("select graphile_worker.add_job('free')");
  await until(() => started.of("job:success").some(({ job }) => job.task_identifier === "free"));
  expect(held.started).toHaveLength(1);
});

test("refetchDelay: after a claim that found little there is a rest, which ends and does not poll on its own", async () => {
  const db = await freshDatabase();
  const started = startPool(
    db,
    { t: () => undefined },
    withLocalQueue({ size: 10, refetchDelay: { durationMs: 40, threshold: 2, maxAbortThreshold: 10_000 } }),
  );
  const rest = await started.nth("localQueue:refetchDelay:start");
  expect(rest).toMatchObject({ jobCount: 0, threshold: 2 });
  expect(rest.delayMs).toBeGreaterThanOrEqual(20);
  expect(rest.delayMs).toBeLessThanOrEqual(60);
  expect(rest.abortThreshold).toBeLessThanOrEqual(10_000);
  await started.nth("localQueue:refetchDelay:expired");
  // A rest that is over asks for nothing: until the job is due there are only the first looks and those it caused itself.
  await db.query("select graphile_worker.add_job('t', run_at => now() + interval '700 ms')");
  await started.completed(1);
  expect(started.of("localQueue:getJobs:complete").length).toBeLessThanOrEqual(6);
});

test("refetchDelay: jobs that come during a rest are found when it is over", async () => {
  const db = await freshDatabase();
  const started = startPool(
    db,
    { t: () => undefined },
    withLocalQueue({ size: 10, refetchDelay: { durationMs: 500, maxAbortThreshold: 1_000_000 } }),
  );
  await started.nth("localQueue:refetchDelay:start");
  await db.query("select graphile_worker.add_job('t')");
  await started.completed(1);
  expect(started.of("localQueue:refetchDelay:expired").length).toBeGreaterThanOrEqual(1);
});

test("refetchDelay: enough announcements end a rest early", async () => {
  const db = await freshDatabase();
  const started = startPool(
    db,
    { t: () => undefined },
    withLocalQueue({ size: 10, refetchDelay: { durationMs: 30_000, maxAbortThreshold: 5 } }),
  );
  await started.nth("localQueue:refetchDelay:start");
  await started.nth("pool:listen:success");
  await until(
    async () => {
      await db.query("select graphile_worker.add_job('t') from generate_series(1, 5)");
      return started.of("localQueue:refetchDelay:abort").length > 0;
    },
    { what: "the rest is ended by announcements" },
  );
  const { count, abortThreshold } = await started.nth("localQueue:refetchDelay:abort");
  expect(count).toBeGreaterThanOrEqual(abortThreshold);
  await started.completed(1);
});

test("completeJobBatchDelay and failJobBatchDelay gather what ends within that time into one write", async () => {
  const db = await freshDatabase();
  await db.query(`
    create table public.writes (kind text);
    create function public.note_write() returns trigger language plpgsql as $$
    begin insert into public.writes values (tg_op); return null; end $$;
    create trigger note_delete after delete on graphile_worker._private_jobs for each statement execute function public.note_write()`);
  const { runner, completed } = await startWorker(
    db,
    {
      good: (n: number) => new Promise((resolve) => setTimeout(resolve, n * 5)),
      bad: () => {
        throw new Error("no");
      },
    },
    { concurrency: 20, ...withLocalQueue({ size: 20 }, { completeJobBatchDelay: 500, failJobBatchDelay: 100 }) },
  );
  await runner.addJobs(Array.from({ length: 10 }, (_, n) => ({ identifier: "good", payload: n })));
  await completed(10);
  const writes = await db.query("select kind from public.writes where kind = 'DELETE'");
  expect(writes.length).toBeLessThanOrEqual(2);
  await runner.addJobs(Array.from({ length: 3 }, () => ({ identifier: "bad", payload: {} })));
  await completed(13);
  expect((await db.jobs()).map(({ last_error }) => last_error)).toEqual(["no", "no", "no"]);
});

test("a shutdown does not lose what waits in a batch", async () => {
  const db = await freshDatabase();
  const { runner, nth } = await startWorker(
    db,
    { t: () => undefined },
    { preset: { worker: { completeJobBatchDelay: 1_000 } } },
  );
  await runner.addJob("t", {});
  await nth("job:success");
  await runner.stop();
  expect(await db.jobs()).toEqual([]);
});
