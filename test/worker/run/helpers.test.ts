import { expect, onTestFinished, test, vi } from "vitest";
import type { Job } from "../../../src/job.ts";
import { consoleLogFactory, Logger } from "../../../src/logger.ts";
import { runOnce } from "../../../src/runner/run.ts";
import { runTaskListOnce } from "../../../src/runner/run-task-list.ts";
import type { TaskHelpers } from "../../../src/task.ts";
import { freshDatabase } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";
import { until } from "../../support/wait.ts";
import { startPool, startWorker } from "../kit.ts";

/** Runs one job and gives what its task returned. */
async function inTask<T>(
  look: (helpers: TaskHelpers) => Promise<T> | T,
  sql = "select graphile_worker.add_job('t', '{}')",
) {
  const db = await freshDatabase();
  await db.query(sql);
  const lines: { scope: object; level: string; message: string }[] = [];
  const logger = new Logger((scope) => (level, message) => void lines.push({ scope, level, message }));
  let result: { value: T } | undefined;
  await runOnce({
    connectionString: db.url,
    noHandleSignals: true,
    logger,
    taskList: {
      t: async (_payload, helpers) => {
        result = { value: await look(helpers) };
      },
    },
  });
  if (!result) throw new Error(`The task failed: ${JSON.stringify(await db.jobs())}`);
  return { db, value: result.value, lines };
}

test("worker: its id, schema, tasks and clock", async () => {
  const { value } = await inTask(({ worker, job }) => ({ ...worker, isOwner: job.locked_by !== null }));
  expect(value).toEqual({
    workerId: expect.stringMatching(/^worker-/),
    schema: "graphile_worker",
    taskIdentifiers: ["t"],
    useNodeTime: false,
    isOwner: true,
  });
});

test("job: the whole row, with the name of its task", async () => {
  const { value } = await inTask(
    ({ job }) => job,
    `select graphile_worker.add_job('t', '{"a":1}', queue_name => 'q', run_at => '2020-01-01T00:00:00.123Z',
      max_attempts => 3, job_key => 'k', priority => 2, flags => array['f'])`,
  );
  expect(value).toEqual({
    id: "1",
    job_queue_id: 1,
    task_id: expect.any(Number),
    payload: { a: 1 },
    priority: 2,
    run_at: new Date("2020-01-01T00:00:00.123Z"),
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
    is_available: false,
    task_identifier: "t",
  });
});

test("withPgClient lends a client; withRetries tries again when the database asks for it", async () => {
  let tries = 0;
  const { value } = await inTask(async ({ withPgClient }) => [
    await withPgClient(async (client) => (await client.query("select 1 as one")).rows[0].one),
    await withPgClient.withRetries(async (client) => {
      tries++;
      if (tries < 3) throw Object.assign(new Error("deadlock"), { code: "40P01" });
      return (await client.query("select 2 as two")).rows[0].two;
    }),
  ]);
  expect(value).toEqual([1, 2]);
  expect(tries).toBe(3);
});

test("query runs a statement with its values", async () => {
  const { value } = await inTask(({ query }) => query<{ sum: number }>("select $1::int + $2::int as sum", [1, 2]));
  expect(value.rows).toEqual([{ sum: 3 }]);
});

test("addJob and addJobs add jobs", async () => {
  const { db, value } = await inTask(async ({ addJob, addJobs }) => [
    await addJob("other", { n: 1 }, { priority: 3 }),
    ...(await addJobs([
      { identifier: "a", payload: {} },
      { identifier: "b", payload: {} },
    ])),
  ]);
  expect(value.map(({ task_identifier }) => task_identifier)).toEqual(["other", "a", "b"]);
  expect((await db.jobs()).map(({ id }) => id).toSorted()).toEqual(value.map(({ id }) => id).toSorted());
});

test("getQueueName: the job's own, another's, none, and one that does not exist", async () => {
  const { value } = await inTask(async ({ getQueueName, job, query }) => {
    await query("insert into graphile_worker._private_job_queues (queue_name) values ('second')");
    const first = getQueueName();
    return {
      isPromise: first instanceof Promise,
      first: await first,
      cached: getQueueName(job.job_queue_id),
      second: await getQueueName(2),
      none: getQueueName(null),
      unknown: await Promise.resolve(getQueueName(999)).catch((error: Error) => error.message),
    };
  }, "select graphile_worker.add_job('t', queue_name => 'q')");
  expect(value).toEqual({
    isPromise: true,
    first: "q",
    cached: "q",
    second: "second",
    none: null,
    unknown: expect.stringContaining("999"),
  });
});

test("getQueueName of a job without a queue is null", async () => {
  expect((await inTask(({ getQueueName }) => getQueueName())).value).toBeNull();
});

test("logger carries the job's scope; the deprecated debug still works", async () => {
  const { lines } = await inTask(({ logger, debug }) => {
    logger.info("hello");
    logger.warn("careful");
    debug("Hey %s", "you");
  });
  const scope = { label: "job", taskIdentifier: "t", jobId: "1", workerId: expect.stringMatching(/^worker-/) };
  expect(lines).toContainEqual({ scope, level: "info", message: "hello" });
  expect(lines).toContainEqual({ scope, level: "warning", message: "careful" });
  expect(lines).toContainEqual({ scope, level: "debug", message: "Hey you" });
  expect(lines).toContainEqual({ scope, level: "error", message: expect.stringContaining("helpers.debug") });
});

test("consoleLogFactory says where a message comes from, and hides what is for debugging", () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => undefined);
  const info = vi.spyOn(console, "info").mockImplementation(() => undefined);
  const debug = vi.spyOn(console, "debug").mockImplementation(() => undefined);
  const said = (): string[] =>
    [log, info, debug].flatMap(({ mock }) =>
      mock.calls.map(([format, ...rest]) => {
        let index = 0;
        return String(format).replace(/%s/g, () => String(rest[index++]));
      }),
    );
  new Logger(consoleLogFactory).scope({ label: "job", workerId: "w", taskIdentifier: "t", jobId: "7" }).info("hi");
  new Logger(consoleLogFactory).info("plain");
  new Logger(consoleLogFactory).debug("secret");
  const lines = said();
  vi.restoreAllMocks();
  expect(lines).toContain("[job(w: t{7})] INFO: hi");
  expect(lines).toContain("[core] INFO: plain");
  expect(lines.some((line) => line.includes("secret"))).toBe(false);
});

test("abortSignal and abortPromise tell a job that its time is over", async () => {
  const db = await freshDatabase();
  const seen: unknown[] = [];
  let hasStarted = false;
  const { pool } = startPool(
    db,
    {
      t: async (_payload, { abortSignal, abortPromise }) => {
        seen.push(abortSignal.aborted);
        hasStarted = true;
        await abortPromise.catch((error: Error) => seen.push(error.name, error === abortSignal.reason));
        seen.push(abortSignal.aborted);
      },
      racing: async (_payload, { abortPromise }) => {
        await Promise.race([abortPromise, new Promise(() => undefined)]);
      },
    },
    { gracefulShutdownAbortTimeout: 20, concurrency: 2 },
  );
  await db.query("select graphile_worker.add_job('t'), graphile_worker.add_job('racing')");
  await until(() => hasStarted);
  await until(async () => (await db.jobs()).every(({ locked_by }) => locked_by !== null));
  await pool.gracefulShutdown("time to go");
  expect(seen).toEqual([false, "AbortError", true, true]);
  expect(pool.abortSignal.aborted).toBe(true);
  await expect(pool.abortPromise).rejects.toThrow();
  expect(await db.jobs()).toMatchObject([
    { task_identifier: "racing", last_error: expect.stringMatching(/\S/), locked_by: null },
  ]);
});

test("the abort signal stays silent when jobs end in time", async () => {
  const db = await freshDatabase();
  const { runner, pool } = await startWorker(db, { t: () => undefined }, { gracefulShutdownAbortTimeout: 10_000 });
  await runner.stop();
  expect(pool().abortSignal.aborted).toBe(false);
});

test("runTaskListOnce: tasks use the same client for queries and further jobs, which are run as well", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('parent')");
  const client = await db.pool.connect();
  const { logger } = rememberingLogger();
  const backends = new Set<number>();
  const ran: string[] = [];
  const pid = async (helpers: TaskHelpers): Promise<void> => {
    const { rows } = await helpers.query<{ pid: number }>("select pg_backend_pid() as pid");
    backends.add(rows[0]!.pid);
    await helpers.withPgClient(async (own) => expect(own).toBe(client));
  };
  const pool = runTaskListOnce(
    { logger, noHandleSignals: true },
    {
      parent: async (_payload, helpers) => {
        await pid(helpers);
        await helpers.addJob("child", {});
        await helpers.addJobs([{ identifier: "child", payload: {} }]);
        ran.push("parent");
      },
      child: async (_payload, helpers) => {
        await pid(helpers);
        ran.push("child");
      },
    },
    client,
  );
  expect(pool.worker?.workerId).toMatch(/^worker-/);
  await pool;
  client.release();
  expect(ran).toEqual(["parent", "child", "child"]);
  expect(backends.size).toBe(1);
  expect(await db.jobs()).toEqual([]);
});

test("runTaskListOnce works inside the caller's transaction and leaves it open", async () => {
  const db = await freshDatabase();
  const client = await db.pool.connect();
  const { logger } = rememberingLogger();
  await client.query("begin");
  await client.query("select graphile_worker.add_job('t')");
  let runs = 0;
  await runTaskListOnce({ logger, noHandleSignals: true }, { t: () => void runs++ }, client);
  await client.query("rollback");
  client.release();
  expect(runs).toBe(1);
  expect(await db.jobs()).toEqual([]);
});

test("runTaskListOnce: what a task rolls back on the shared client takes nothing of the worker's with it", async () => {
  const db = await freshDatabase();
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  await db.query("select graphile_worker.add_job('t', queue_name => 'q' || n % 2) from generate_series(1, 20) as n");
  const client = await db.pool.connect();
  const { logger } = rememberingLogger();
  let runs = 0;
  await runTaskListOnce(
    { logger, noHandleSignals: true },
    {
      t: (_payload, { withPgClient }) =>
        withPgClient(async (own) => {
          runs++;
          await own.query("begin");
          await own.query("select pg_sleep(0.001)");
          await own.query("rollback");
        }),
    },
    client,
  );
  client.release();
  expect(runs).toBe(20);
  expect(await db.jobs()).toEqual([]);
  expect(warnings.filter((message) => message.includes("client.query()"))).toEqual([]);
});

test("a task that changes helpers.job still has its own row settled, and its queue released", async () => {
  const db = await freshDatabase();
  const spoil = (_payload: unknown, { job }: { job: Job }): void => {
    Object.assign(job, { id: "999", locked_by: "another", job_queue_id: 77, attempts: 9, max_attempts: 1 });
  };
  const { runner, completed, of } = await startWorker(db, {
    good: spoil,
    bad: (payload, helpers) => {
      spoil(payload, helpers);
      throw new Error("no");
    },
  });
  const good = await runner.addJob("good", {}, { queueName: "q" });
  const bad = await runner.addJob("bad", {}, { queueName: "q" });
  const last = await runner.addJob("good", {}, { queueName: "q" });
  await completed(3);
  expect(
    of("job:complete")
      .map(({ job }) => job.id)
      .toSorted(),
  ).toEqual([good.id, bad.id, last.id]);
  expect(of("job:failed")).toEqual([]);
  expect(await db.jobs()).toMatchObject([{ id: bad.id, attempts: 1, last_error: "no", locked_by: null }]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});
