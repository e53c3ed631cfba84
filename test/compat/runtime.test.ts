import type { PoolClient } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import type * as hathi from "../../src/index.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { bothWays } from "./both-ways.ts";
import { held, type Library, loadLibrary, observed } from "./library.ts";

const addJob = async (db: TestDatabase, args: string): Promise<string> => {
  const [row] = await db.query<{ id: string }>(`select id::text from graphile_worker.add_job(${args})`);
  return row!.id;
};

/** A client that goes back when the test is over. */
async function lentClient(db: TestDatabase): Promise<PoolClient> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release());
  return client;
}

/** Runs what is due, on one client. */
async function runDue(library: Library, db: TestDatabase, tasks: hathi.TaskList, options: hathi.RunOnceOptions = {}) {
  const client = await db.pool.connect();
  try {
    await library.runTaskListOnce({ ...observed(library).options, ...options }, tasks, client);
  } finally {
    client.release();
  }
}

const secondsFromNow = async (db: TestDatabase): Promise<number> => {
  const [row] = await db.query<{ seconds: number }>(
    "select extract(epoch from run_at - now())::float8 as seconds from graphile_worker._private_jobs order by id limit 1",
  );
  return row!.seconds;
};

bothWays(({ fresh, isOurs }) => {
  test("a pool runs jobs as they come, as many at once as it may, and ends cleanly", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const task = held();
    const pool = library.runTaskList(
      { ...observed(library).options, concurrency: 3 },
      { job1: task.task },
      testPool(db.url),
    );
    let isFinished = false;
    void pool.promise.then(() => {
      isFinished = true;
    });
    for (let id = 0; id < 5; id++) {
      await addJob(db, `'job1', '{"id":${id}}', 'queue${id}'`);
      if (id < 3) await until(() => task.jobs.length === id + 1);
    }
    expect(task.payloads).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }]);
    for (let id = 0; id < 5; id++) {
      await until(() => task.releases[id]);
      task.releases[id]!();
    }
    await until(async () => (await db.jobs()).length === 0);
    expect(isFinished).toBe(false);
    await pool.gracefulShutdown();
    await until(() => isFinished);
    expect(task.jobs).toHaveLength(5);
  });

  test("runTaskListOnce runs what is due, one after the other, and what those jobs add", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const ran: string[] = [];
    await addJob(db, `'job1', '{"a":1}'`);
    await addJob(db, `'job2'`);
    await addJob(db, `'job2', run_at => now() + interval '3 seconds'`);
    await runDue(library, db, {
      job1: async (payload, { addJob: add, job }) => {
        ran.push(`job1 ${JSON.stringify(payload)} ${job.task_identifier}`);
        await add("job3", {});
      },
      job2: () => void ran.push("job2"),
      job3: () => void ran.push("job3"),
    });
    expect(ran).toEqual(['job1 {"a":1} job1', "job2", "job3"]);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "job2", attempts: 0, locked_by: null }]);
  });

  test("a job and its queue carry the pool's id while the job runs", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const task = held();
    await addJob(db, `'job1', '{}', 'q'`);
    const pool = library.runTaskListOnce(observed(library).options, { job1: task.task }, await lentClient(db));
    await until(() => task.jobs.length === 1);
    expect(pool.worker!.getActiveJob()).toMatchObject({ id: task.jobs[0]!.id });
    const lock = { locked_by: pool.id, locked_at: expect.any(Date) };
    expect(await db.jobs()).toMatchObject([{ ...lock, attempts: 1 }]);
    expect(await db.query("select * from graphile_worker._private_job_queues")).toMatchObject([lock]);
    task.releases[0]!();
    await pool;
    expect(await db.jobs()).toEqual([]);
    expect(await db.query("select * from graphile_worker._private_job_queues")).toMatchObject([
      { locked_by: null, locked_at: null },
    ]);
  });

  test("a job that fails waits exp(attempts) seconds, and is tried again with its last error", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const seen: unknown[] = [];
    const job1 = vi.fn((_payload: unknown, { job }: hathi.JobHelpers) => {
      seen.push([job.attempts, job.last_error]);
      throw new Error(`TEST_ERROR ${job.attempts}`);
    });
    await addJob(db, `'job1', '{}', 'q'`);
    for (const attempt of [1, 2, 3]) {
      await runDue(library, db, { job1 });
      await until(async () => (await db.jobs())[0]!.locked_at === null);
      expect(await db.jobs()).toMatchObject([
        { attempts: attempt, max_attempts: 25, last_error: `TEST_ERROR ${attempt}`, locked_by: null },
      ]);
      const seconds = await secondsFromNow(db);
      expect(seconds).toBeLessThanOrEqual(Math.exp(attempt));
      expect(seconds).toBeGreaterThan(Math.exp(attempt) - 2);
      await runDue(library, db, { job1 }); // too early
      expect(job1).toHaveBeenCalledTimes(attempt);
      await db.query("update graphile_worker._private_jobs set run_at = now()");
    }
    expect(seen).toEqual([
      [1, null],
      [2, "TEST_ERROR 1"],
      [3, "TEST_ERROR 2"],
    ]);
  });

  test("a job whose attempts are reset by hand while it runs can fail and is free again", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    await addJob(db, `'job1', '{}', 'q'`);
    const job1 = async (): Promise<void> => {
      await db.query("update graphile_worker._private_jobs set attempts = 0");
      throw new Error("TEST_ERROR");
    };
    await runDue(library, db, { job1 });
    await until(async () => (await db.jobs())[0]!.locked_at === null);
    expect(await db.jobs()).toMatchObject([{ attempts: 0, last_error: "TEST_ERROR", locked_by: null }]);
    expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
  });

  test("a job out of attempts stays and is not run again", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const job1 = vi.fn(() => {
      throw new Error("TEST_ERROR");
    });
    await addJob(db, `'job1', max_attempts => 1`);
    await runDue(library, db, { job1 });
    await until(async () => (await db.jobs())[0]!.locked_at === null);
    await db.query("update graphile_worker._private_jobs set run_at = now()");
    await runDue(library, db, { job1 });
    expect(job1).toHaveBeenCalledTimes(1);
    expect(await db.jobs()).toMatchObject([{ attempts: 1, last_error: "TEST_ERROR", locked_by: null }]);
  });

  test("jobs of one queue are run one after the other, whatever the number of workers", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const task = held();
    for (let id = 0; id < 5; id++) await addJob(db, `'job1', '{"id":${id}}', 'serial'`);
    const runOn = (client: PoolClient): Promise<void> =>
      library.runTaskListOnce(observed(library).options, { job1: task.task }, client).promise;
    const clients = await Promise.all([1, 2, 3].map(() => lentClient(db)));
    const ends = clients.map(runOn);
    for (let id = 0; id < 5; id++) {
      await until(() => task.jobs.length === id + 1);
      expect(task.payloads[id]).toEqual({ id });
      task.releases[id]!();
      // The original ends its run when it looks before the queue is free again.
      if (!isOurs) {
        await until(async () => (await db.jobs()).length === 4 - id);
        ends.push(runOn(clients[0]!));
      }
    }
    await Promise.all(ends);
    await until(async () => (await db.jobs()).length === 0);
    expect(task.jobs).toHaveLength(5);
  });

  test("flags that are forbidden, as an array, a function or an async function", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    for (const forbiddenFlags of [["d"], () => ["d"], async () => ["d"]]) {
      const ran: string[] = [];
      await addJob(db, `'job1', '{"v":"good"}', flags => array['a', 'b']`);
      await addJob(db, `'job1', '{"v":"bad"}', flags => array['c', 'd']`);
      await addJob(db, `'job1', '{"v":"none"}'`);
      const tasks = { job1: ({ v }: { v: string }) => void ran.push(v) };
      await runDue(library, db, tasks, { forbiddenFlags });
      expect(ran).toEqual(["good", "none"]);
      expect(await db.jobs()).toMatchObject([{ attempts: 0, locked_by: null, flags: { c: true, d: true } }]);
      await runDue(library, db, tasks, { forbiddenFlags: null });
      expect(ran).toEqual(["good", "none", "bad"]);
    }
  });

  test("a batch job keeps what failed", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    await addJob(db, `'job1', '[{"id":1},{"id":2},{"id":3}]'`);
    await runDue(library, db, {
      job1: (items: { id: number }[]) =>
        items.map(async ({ id }) => {
          if (id !== 2) throw new Error(`item ${id}`);
        }),
    });
    await until(async () => (await db.jobs())[0]!.locked_at === null);
    expect(await db.jobs()).toMatchObject([
      { payload: [{ id: 1 }, { id: 3 }], last_error: "Batch failures:\nitem 1\nitem 3", attempts: 1 },
    ]);
    await db.query("update graphile_worker._private_jobs set run_at = now()");
    await runDue(library, db, { job1: (items: unknown[]) => items.map(async () => undefined) });
    await until(async () => (await db.jobs()).length === 0);
  });

  test("a job with a key that is added again while it runs is run again", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const task = held();
    await addJob(db, `'job1', '{"v":1}', job_key => 'k'`);
    const pool = library.runTaskList(
      { ...observed(library).options, concurrency: 2 },
      { job1: task.task },
      testPool(db.url),
    );
    await until(() => task.jobs.length === 1);
    await addJob(db, `'job1', '{"v":2}', job_key => 'k'`);
    await until(() => task.jobs.length === 2);
    expect(task.payloads).toEqual([{ v: 1 }, { v: 2 }]);
    for (const release of task.releases) release();
    await until(async () => (await db.jobs()).length === 0);
    await pool.gracefulShutdown();
  });

  test("a job that is removed by its key while it runs is not tried again", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    await addJob(db, `'job1', job_key => 'k'`);
    await runDue(library, db, {
      job1: async () => {
        await db.query("select graphile_worker.remove_job('k')");
        throw new Error("no");
      },
    });
    await until(async () => (await db.jobs())[0]!.locked_at === null);
    expect(await db.jobs()).toMatchObject([{ attempts: 25, max_attempts: 25, key: null, last_error: "no" }]);
  });

  test("jobs are told by abortSignal and abortPromise that their time is over", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const seen: unknown[] = [];
    await addJob(db, `'job1'`);
    const pool = library.runTaskList(
      { ...observed(library).options, gracefulShutdownAbortTimeout: 20 },
      {
        job1: async (_payload, { abortSignal, abortPromise }) => {
          seen.push(abortSignal.aborted);
          await abortPromise.catch((error: Error) => seen.push(error.name));
          seen.push(abortSignal.aborted);
        },
      },
      testPool(db.url),
    );
    await until(() => seen.length === 1);
    await pool.gracefulShutdown();
    expect(seen).toEqual([false, "AbortError", true]);
  });

  test("the helpers of a job", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const seen: Record<string, unknown> = {};
    await addJob(db, `'job1', '{}', 'my_queue'`);
    await library.runOnce({
      ...observed(library).options,
      connectionString: db.url,
      taskList: {
        job1: async (_payload, helpers) => {
          const { getQueueName, query, withPgClient, addJobs, debug } = helpers;
          debug("Hey %o", {});
          seen.queue = await getQueueName();
          seen.cached = getQueueName();
          seen.unknown = await Promise.resolve(getQueueName(27)).catch(({ message }) => message);
          seen.none = getQueueName(null);
          seen.query = (await query("select $1::int as n", [1])).rows;
          seen.client = (await withPgClient((client) => client.query("select 2 as n"))).rows;
          seen.retries = (await withPgClient.withRetries((client) => client.query("select 3 as n"))).rows;
          seen.added = (await addJobs([{ identifier: "job2", payload: {} }])).length;
        },
      },
    });
    expect(seen).toEqual({
      queue: "my_queue",
      cached: "my_queue",
      unknown: "Queue with id '27' not found",
      none: null,
      query: [{ n: 1 }],
      client: [{ n: 2 }],
      retries: [{ n: 3 }],
      added: 1,
    });
  });

  test("what a task is handed as its job", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const jobs: hathi.Job[] = [];
    await addJob(db, `'job1', '{"a":[1,null,"x"]}', 'q', '2020-01-01T00:00:00.5Z', 3, 'k', 2, array['f']`);
    await runDue(library, db, { job1: (_payload, { job }) => void jobs.push(job) });
    expect(jobs).toHaveLength(1);
    expect(Object.fromEntries(Object.entries(jobs[0]!).filter(([key]) => key !== "is_available"))).toEqual({
      id: "1",
      job_queue_id: 1,
      task_id: 1,
      payload: { a: [1, null, "x"] },
      priority: 2,
      run_at: new Date("2020-01-01T00:00:00.500Z"),
      attempts: 1,
      max_attempts: 3,
      last_error: null,
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
      key: "k",
      locked_at: expect.any(Date),
      locked_by: expect.stringMatching(/^otpool-[0-9a-f]{18}$/),
      revision: 0,
      flags: { f: true },
      task_identifier: "job1",
    });
  });

  test("a runner adds jobs, stops once, and its promise resolves", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const job1 = vi.fn();
    const runner = await library.run({ ...observed(library).options, connectionString: db.url, taskList: { job1 } });
    const job = await runner.addJob("job1", { id: 1 }, { priority: 1 });
    expect(job).toMatchObject({ task_identifier: "job1", priority: 1 });
    await until(() => job1.mock.calls.length === 1);
    await runner.stop();
    await runner.promise;
    await expect(runner.stop()).rejects.toThrow("Runner is already stopped");
  });

  test.each<[string, hathi.RunnerOptions, string]>([
    [
      "a list and a folder of tasks",
      { taskList: {}, taskDirectory: "x" },
      "Exactly one of either `taskDirectory` or `taskList` should be set",
    ],
    [
      "a crontab and parsed items",
      { taskList: { t: () => undefined }, crontab: "# x", parsedCronItems: [] },
      "`crontab` and `parsedCronItems` must not be set at the same time",
    ],
    ["a folder that is not there", { taskDirectory: "/nonexistent" }, "'/nonexistent' does not exist"],
  ])("run() refuses %s, in the same words", async (_name, options, message) => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    await expect(library.run({ ...observed(library).options, connectionString: db.url, ...options })).rejects.toThrow(
      message,
    );
  });

  test("a pool and a connection string are refused, and so is nothing at all, in the same words", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const taskList = { t: (): void => undefined };
    await expect(library.run({ ...options, taskList, pgPool: db.pool, connectionString: db.url })).rejects.toThrow(
      "Both `pgPool` and `connectionString` are set, at most one of these options should be provided",
    );
    vi.stubEnv("DATABASE_URL", undefined);
    vi.stubEnv("PGDATABASE", undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(library.run({ ...options, taskList })).rejects.toThrow(
      "You must either specify `pgPool` or `connectionString`",
    );
  });

  test("thrown things end as failures; ours says what was thrown", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    for (const [thrown, text, original] of [
      [new Error("boom"), "boom", "boom"],
      [{ message: "like an error" }, "like an error", "like an error"],
      [new Error(""), "Error", "Error"],
      ["words", "words", "An error occurred"],
      [null, "Non-error thrown: null", "An error occurred"],
    ] as const) {
      await addJob(db, `'job1', max_attempts => 1`);
      await runDue(library, db, {
        job1: () => {
          throw thrown;
        },
      });
      await until(async () => (await db.jobs())[0]!.locked_at === null);
      expect(await db.jobs()).toMatchObject([{ last_error: isOurs ? text : original }]);
      await db.query("delete from graphile_worker._private_jobs");
    }
  });
});
