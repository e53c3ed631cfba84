import { expect, onTestFinished, test } from "vitest";
import {
  makeWorkerUtils,
  type ProgressReport,
  type QueueUtils,
  type ReportedProgress,
  type TaskHelpers,
} from "../../src/index.ts";
import { monotonicMs } from "../../src/util/timers.ts";
import { countedPool } from "../support/counted-pool.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

async function utilsOn(db: TestDatabase): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return utils;
}

/** A task that does what it is told, step by step. */
function steps(): {
  readonly task: (payload: unknown, helpers: TaskHelpers) => Promise<void>;
  report(report: ProgressReport): Promise<void>;
  end(error?: Error): Promise<void>;
} {
  let helpers: TaskHelpers | undefined;
  let finish: { resolve: () => void; reject: (error: Error) => void } | undefined;
  return {
    task: (_payload, given) =>
      new Promise((resolve, reject) => {
        helpers = given;
        finish = { resolve, reject };
      }),
    report: async (report) => (await until(() => helpers)).reportProgress(report),
    async end(error) {
      const { resolve, reject } = await until(() => finish);
      helpers = undefined;
      finish = undefined;
      if (error) reject(error);
      else resolve();
    },
  };
}

const rows = (db: TestDatabase): Promise<unknown[]> =>
  db.query("select job_id::int as id from graphile_worker._hathi_job_progress");

test("progress is shown by getJob and list, told by an event and onProgress, survives a retry, and goes with its job", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const { task, report, end } = steps();
  const { runner, of } = await startWorker(db, { task }, { taskOptions: { task: { backoff: () => 0 } } });
  const { id } = await runner.addJob("task", {});
  const seen: ReportedProgress[] = [];
  const watched = (async () => {
    for await (const progress of utils.onProgress(id)) seen.push(progress);
  })();
  const shown = async (): Promise<unknown> => (await utils.listJobs()).jobs[0]?.progress;
  await report(0.4);
  await until(shown);
  expect(await shown()).toEqual({ done: 0.4, total: 1, note: null, reported_at: expect.any(Date) });
  await report({ done: 3, total: 10, note: "third of ten" });
  await until(() => seen.some(({ done }) => done === 3));
  expect(await utils.getJob(id)).toMatchObject({ progress: { done: 3, total: 10, note: "third of ten" } });
  await end(new Error("not yet"));
  // The next attempt has begun, and nothing is forgotten.
  await report({ done: 5 });
  await until(() => seen.some(({ done }) => done === 5));
  expect(await utils.getJob(id)).toMatchObject({ attempts: 2, progress: { done: 5, total: null, note: null } });
  expect(of("job:progress").map(({ job, progress }) => [job.id, progress.done])).toEqual([
    [id, 0.4],
    [id, 3],
    [id, 5],
  ]);
  await end();
  await watched;
  expect(seen.map(({ done }) => done)).toEqual([0.4, 3, 5]);
  await until(async () => (await rows(db)).length === 0, { what: "the row is deleted" });
});

test("a hundred jobs that report all the time cost one statement a second, and those that never do cost none", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url, 10);
  let isOver = false;
  let calls = 0;
  const { runner, completed } = await startWorker(
    db,
    {
      busy: async (_payload, { reportProgress }) => {
        for (let done = 0; !isOver; done++) {
          for (let again = 0; again < 50; again++) reportProgress({ done, total: 1_000_000 });
          calls += 50;
          await new Promise((resolve) => void setTimeout(resolve, 5));
        }
      },
      quiet: () => undefined,
    },
    { pgPool: pool, concurrency: 100 },
  );
  const written = (): number => sent.filter((text) => text.includes("_hathi_write_progress")).length;
  for (let n = 0; n < 20; n++) await runner.addJob("quiet", {});
  await completed(20);
  expect(written()).toBe(0);
  const since = monotonicMs();
  await runner.addJobs(Array.from({ length: 100 }, () => ({ identifier: "busy", payload: {} })));
  await until(() => written() >= 3 && calls > 10_000);
  const most = 1 + (monotonicMs() - since) / 1_000;
  expect(written()).toBeLessThanOrEqual(most);
  expect(await rows(db)).toHaveLength(100);
  isOver = true;
  await completed(120);
  await until(async () => (await rows(db)).length === 0);
});

test("what is no progress is ignored with one line, and the job goes on", async () => {
  const db = await freshDatabase();
  const odd = [
    Number.NaN,
    "half",
    { done: -1 },
    { done: 1, total: Number.POSITIVE_INFINITY },
    null,
    undefined,
    { note: "x" },
    1n,
  ];
  const { runner, completed, lines } = await startWorker(db, {
    odd: (_payload, { reportProgress }) => {
      for (const report of odd) reportProgress(report as never);
      reportProgress({ done: 1, note: `a\0b${"x".repeat(5_000)}` });
      reportProgress(7);
    },
  });
  await runner.addJob("odd", {});
  await completed(1);
  expect(lines.filter(({ level }) => level === "warning").map(({ message }) => message)).toEqual([
    "Task 'odd' reported invalid progress, which is ignored. JobSpecError: Progress must be a share from 0 to 1 or { done, total, note } with amounts from 0 up, got NaN.",
  ]);
});

test("an attempt that was taken from its worker says nothing any more; what is left of jobs that are gone is tidied", async () => {
  const db = await freshDatabase();
  const { id } = await (await utilsOn(db)).addJob("t", {});
  const write = (pool: string, done: number): Promise<unknown> =>
    db.query("select from graphile_worker._hathi_write_progress($1, $2, $3, '{null}', '{null}', '{}')", [
      pool,
      [id],
      [done],
    ]);
  await db.query("update graphile_worker._private_jobs set locked_by = 'b', locked_at = now(), attempts = 1");
  await write("a", 1);
  expect(await rows(db)).toEqual([]);
  await write("b", 2);
  await write("a", 3);
  expect(await db.query("select done from graphile_worker._hathi_job_progress")).toEqual([{ done: 2 }]);
  await db.query("select from graphile_worker._hathi_tidy_progress()");
  expect(await rows(db)).toHaveLength(1);
  await db.query("delete from graphile_worker._private_jobs");
  await db.query("select from graphile_worker._hathi_tidy_progress()");
  expect(await rows(db)).toEqual([]);
});

test("onProgress ends with its job, its signal and its utilities, and knows no job that never was", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const follow = async (id: string | number, signal?: AbortSignal): Promise<void> => {
    for await (const _ of utils.onProgress(id, { signal }));
  };
  await expect(follow(99)).rejects.toThrow("Nothing is known of job 99");
  const { id } = await utils.addJob("t", {}, { maxAttempts: 1 });
  await expect(follow(id, AbortSignal.timeout(50))).rejects.toThrow(/timeout/);
  const ended = follow(id);
  await utils.permanentlyFailJobs([id], "enough");
  await ended;
  const other = follow((await utils.addJob("t", {})).id);
  other.catch(() => undefined);
  await utils.release();
  await expect(other).rejects.toThrow("The utilities were released");
});
