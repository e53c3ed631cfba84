import { once } from "node:events";
import pg, { type PoolClient } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { JobLostError, SnoozeError } from "../../../src/job-errors.ts";
import { makeWorkerUtils } from "../../../src/runner/worker-utils.ts";
import type { TaskHelpers } from "../../../src/task.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { startProxy } from "../../support/proxy.ts";
import { until } from "../../support/wait.ts";
import { type StartedWorker, startWorker } from "../kit.ts";

/** Runs the work in a transaction on a client of the test's own pool. */
async function transact<T>(db: TestDatabase, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const client = await db.pool.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

async function withEffects(): Promise<TestDatabase> {
  const db = await freshDatabase();
  await db.query("create table effects (job bigint not null, attempt integer not null)");
  return db;
}

const effect = (tx: Pick<PoolClient, "query">, { job }: TaskHelpers) =>
  tx.query("insert into effects values ($1, $2)", [job.id, job.attempts]);

const effects = (db: TestDatabase) => db.query<{ attempt: number }>("select attempt from effects");

async function add(db: TestDatabase, options = ""): Promise<string> {
  const [row] = await db.query<{ id: string }>(`select id from graphile_worker.add_job('work'${options})`);
  return row!.id;
}

const endings = (worker: StartedWorker) =>
  worker.heard.flatMap(({ name, payload }) =>
    name === "job:complete" ? [(payload as { outcome: string }).outcome] : name === "job:lost" ? ["lost"] : [],
  );

describe("a task that completes its job in its own transaction", () => {
  test("commits its rows, its jobs, the history and the completion together", async () => {
    const db = await withEffects();
    const id = await add(db, ", queue_name => 'q'");
    const seen: unknown[] = [];
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await transact(db, async (tx) => {
            await effect(tx, helpers);
            await helpers.withTransaction(tx).addJob("later", {}, { runAt: new Date(Date.now() + 3_600_000) });
            await helpers.completeIn(tx, { result: { fine: true } });
            seen.push(await db.job(id), (await db.jobs()).length, await effects(db), worker.of("job:success").length);
          });
        },
      },
      { history: "full", taskOptions: { work: { keepResult: true } } },
    );
    await worker.completed(1);
    expect(seen).toMatchObject([{ id, attempts: 1 }, 1, [], 0]);
    expect(await effects(db)).toEqual([{ attempt: 1 }]);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "later" }]);
    expect(await db.query("select outcome, result, queue_name from graphile_worker._hathi_history_attempts")).toEqual([
      { outcome: "succeeded", result: { fine: true }, queue_name: "q" },
    ]);
    expect(await db.query("select locked_by from graphile_worker._private_job_queues")).toEqual([{ locked_by: null }]);
    await worker.runner.stop();
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(worker.of("job:success")).toHaveLength(1);
  });

  test("is tried again if it throws before the commit, with the error it threw", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, async (tx) => {
          await effect(tx, helpers);
          await helpers.completeIn(tx);
          throw new Error("after all");
        }),
    });
    await worker.completed(1);
    expect(await db.job(id)).toMatchObject({
      attempts: 1,
      last_error: expect.stringContaining("after all"),
      locked_by: null,
    });
    expect(await effects(db)).toEqual([]);
    expect(endings(worker)).toEqual(["failed"]);
  });

  test("is done if it throws after the commit, and that is logged", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        await transact(db, async (tx) => {
          await effect(tx, helpers);
          await helpers.completeIn(tx);
        });
        throw new Error("too late");
      },
    });
    await worker.completed(1);
    expect(await db.job(id)).toBeUndefined();
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(worker.of("job:error")).toEqual([]);
    expect(worker.lines).toContainEqual(
      expect.objectContaining({ level: "warning", message: expect.stringMatching(/The job is done: Error: too late/) }),
    );
  });

  test("fails if it rolls back and returns", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        await transact(db, async (tx) => {
          await helpers.completeIn(tx);
          throw new Error("rolled back");
        }).catch(() => undefined);
      },
    });
    await worker.completed(1);
    expect((await db.job(id))?.last_error).toContain("was not committed");
    expect(endings(worker)).toEqual(["failed"]);
  });

  test("may complete twice in one transaction, and again after a rollback", async () => {
    const db = await withEffects();
    await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        const client = await db.pool.connect();
        await client.query("begin");
        await effect(client, helpers);
        await helpers.completeIn(client);
        await client.query("rollback");
        await client.query("begin");
        await effect(client, helpers);
        await helpers.completeIn(client);
        await client.query("savepoint undo");
        await helpers.completeIn(client);
        await client.query("rollback to undo");
        await helpers.completeIn(client);
        await client.query("commit");
        client.release();
      },
    });
    await worker.completed(1);
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(await effects(db)).toHaveLength(1);
  });

  test("is refused in a second transaction while the first is open, without waiting for it", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, async (first) => {
          await helpers.completeIn(first);
          await transact(db, (second) => helpers.completeIn(second));
        }),
    });
    await worker.completed(1);
    expect((await db.job(id))?.last_error).toContain("another transaction that is still open");
  });

  test("may complete twice at once in one transaction", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, async (tx) => {
          await effect(tx, helpers);
          await Promise.all([helpers.completeIn(tx), helpers.completeIn(tx)]);
        }),
    });
    await worker.completed(1);
    expect(await db.job(id)).toBeUndefined();
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(await effects(db)).toHaveLength(1);
  });

  test("is refused in two transactions at once, and does not keep its job locked", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, (first) =>
          transact(db, async (second) => {
            await Promise.all([helpers.completeIn(first), helpers.completeIn(second)]);
          }),
        ),
    });
    await worker.completed(1);
    expect(await db.job(id)).toMatchObject({
      attempts: 1,
      locked_by: null,
      last_error: expect.stringContaining("another transaction that is still open"),
    });
  });

  test("is failed, and not kept locked, if its transaction is of another database", async () => {
    const db = await withEffects();
    const other = await freshDatabase();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => transact(other, (tx) => helpers.completeIn(tx)),
    });
    await worker.completed(1);
    expect(endings(worker)).toEqual(["failed"]);
    expect(await db.job(id)).toMatchObject({
      attempts: 1,
      locked_by: null,
      last_error: expect.stringContaining("belongs to another database"),
    });
  });

  test("is failed if the completion was rolled back to a savepoint and the rest committed", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, async (tx) => {
          await tx.query("savepoint before");
          await helpers.completeIn(tx);
          await tx.query("rollback to before");
        }),
    });
    await worker.completed(1);
    expect((await db.job(id))?.last_error).toContain("was not committed");
  });

  test("is refused outside a transaction, where it would commit by itself", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => helpers.withPgClient((client) => helpers.completeIn(client)),
    });
    await worker.completed(1);
    expect((await db.job(id))?.last_error).toContain("on which no transaction is open");
  });

  test("waits for a transaction that was left open, until the server ends it", async () => {
    const db = await withEffects();
    const id = await add(db);
    const client = await db.pool.connect();
    client.on("error", () => undefined);
    onTestFinished(() => client.release(true));
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await client.query("begin");
          await effect(client, helpers);
          await helpers.completeIn(client);
        },
      },
      { taskOptions: { work: { transactionTimeout: 300 } } },
    );
    await worker.completed(1);
    expect(endings(worker)).toEqual(["failed"]);
    expect((await db.job(id))?.last_error).toContain("was not committed");
    expect(await effects(db)).toEqual([]);
  });

  test("is done if its transaction is committed after the task has returned and the server was asked", async () => {
    const db = await withEffects();
    await add(db);
    const client = await db.pool.connect();
    onTestFinished(() => client.release(true));
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        await client.query("begin");
        await effect(client, helpers);
        await helpers.completeIn(client);
      },
    });
    const asked = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and query like '%look_at_completions%'`;
    await until(async () => (await db.query(asked)).length > 0, { what: "the server was asked" });
    await client.query("commit");
    await worker.completed(1);
    await worker.runner.stop();
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(await effects(db)).toEqual([{ attempt: 1 }]);
  });

  test.each([
    ["500ms", "500ms"],
    ["1h", "5min"],
    ["0", "5min"],
  ])("keeps the server's limit of %s if that is tighter", async (theirs, expected) => {
    const db = await withEffects();
    await add(db);
    const [{ setting }] = (await db.query(
      "select case when current_setting('transaction_timeout', true) is null then 'idle_in_transaction_session_timeout' else 'transaction_timeout' end as setting",
    )) as [{ setting: string }];
    const limits: unknown[] = [];
    const worker = await startWorker(db, {
      work: async (_payload, helpers) =>
        transact(db, async (tx) => {
          await tx.query(`set local ${setting} = '${theirs}'`);
          await helpers.completeIn(tx);
          limits.push((await tx.query(`select current_setting('${setting}') as limit`)).rows[0].limit);
        }),
    });
    await worker.completed(1);
    expect(limits).toEqual([expected]);
    expect(endings(worker)).toEqual(["succeeded"]);
  });

  test("completes although its locks were refreshed, and although it was cancelled", async () => {
    const db = await withEffects();
    const ids = [await add(db), await add(db)];
    const utils = await makeWorkerUtils({ connectionString: db.url });
    onTestFinished(() => utils.release());
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        if (helpers.job.id === ids[0]) {
          await db.query(
            "update graphile_worker._private_jobs set locked_at = now() + interval '1 hour' where id = $1",
            [ids[0]],
          );
        } else await utils.cancelJobs([ids[1]!]);
        await transact(db, async (tx) => {
          await effect(tx, helpers);
          await helpers.completeIn(tx);
        });
      },
    });
    await worker.completed(2);
    expect(endings(worker)).toEqual(["succeeded", "succeeded"]);
    expect(await effects(db)).toHaveLength(2);
    expect(await db.jobs()).toEqual([]);
  });

  test("is found done when its time is over and it never returns", async () => {
    const db = await withEffects();
    await add(db);
    let end: (() => void) | undefined;
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await transact(db, (tx) => helpers.completeIn(tx));
          await new Promise<void>((resolve) => {
            end = resolve;
          });
        },
      },
      { taskOptions: { work: { timeout: 200, abortGrace: 50 } } },
    );
    await worker.completed(1);
    expect(end).toBeDefined();
    end!();
    await worker.runner.stop();
    expect(endings(worker)).toEqual(["succeeded"]);
  });
});

test("a job whose commit went unanswered is done, although its key was added again meanwhile", async () => {
  const db = await withEffects();
  const proxy = await startProxy(db.url);
  const key = ", job_key => 'k'";
  let isAddedAgain = false;
  const worker = await startWorker(db, {
    work: async (_payload, helpers) => {
      const client = new pg.Client({ connectionString: isAddedAgain ? db.url : proxy.url });
      client.on("error", () => undefined);
      await client.connect();
      try {
        await client.query("begin");
        await effect(client, helpers);
        await helpers.completeIn(client);
        const cut = isAddedAgain ? undefined : proxy.cutAfter("commit\0");
        await client.query("commit");
        await cut;
      } catch (error) {
        isAddedAgain = true;
        await until(async () => (await db.jobs()).length === 0, { what: "the commit went through" });
        await add(db, key);
        throw error;
      } finally {
        await client.end().catch(() => undefined);
      }
    },
  });
  const first = await add(db, key);
  await worker.completed(2);
  await worker.runner.stop();
  expect(isAddedAgain).toBe(true);
  expect(endings(worker)).toEqual(["succeeded", "succeeded"]);
  const rows = await db.query<{ job: string }>("select job from effects order by job");
  expect(rows).toHaveLength(2);
  expect(rows[0]!.job).toBe(first);
  expect(await db.jobs()).toEqual([]);
});

test("a job that was replaced by its key while it ran completes, and so does its replacement", async () => {
  const db = await withEffects();
  const key = ", job_key => 'k'";
  let hasReplaced = false;
  await add(db, key);
  const worker = await startWorker(db, {
    work: async (_payload, helpers) =>
      transact(db, async (tx) => {
        if (!hasReplaced) await add(db, key);
        hasReplaced = true;
        await effect(tx, helpers);
        await helpers.completeIn(tx);
      }),
  });
  await worker.completed(2);
  await worker.runner.stop();
  expect(endings(worker)).toEqual(["succeeded", "succeeded"]);
  expect(await db.query("select count(distinct job)::integer as jobs from effects")).toEqual([{ jobs: 2 }]);
  expect(await db.jobs()).toEqual([]);
});

test("jobs of a named queue that complete in their transactions keep their order, one at a time, over two workers", async () => {
  const db = await withEffects();
  await db.query("alter table effects add column nth bigint generated always as identity");
  const count = 60;
  await db.query(
    "select graphile_worker.add_job('work', queue_name => 'q' || nth % 2) from generate_series(1, $1) as nth",
    [count],
  );
  const underWay = new Map<number, string>();
  const overlaps: string[] = [];
  const work = async (_payload: unknown, helpers: TaskHelpers): Promise<void> => {
    const { id, job_queue_id: queue } = helpers.job;
    if (underWay.has(queue!)) overlaps.push(`${underWay.get(queue!)} and ${id}`);
    underWay.set(queue!, id);
    await transact(db, async (tx) => {
      await effect(tx, helpers);
      await helpers.completeIn(tx);
      underWay.delete(queue!);
    });
    // Its queue is free by now, and its next job may be claimed before this one is known to have ended.
    if (Number(id) % 3 === 0) await db.query("select pg_sleep(0.02)");
  };
  const options = { concurrency: 3, pollInterval: 100 };
  const workers = [await startWorker(db, { work }, options), await startWorker(db, { work }, options)];
  await until(async () => (await db.jobs()).length === 0, { withinMs: 60_000, what: "all jobs are done" });
  for (const worker of workers) await worker.runner.stop();
  expect(overlaps).toEqual([]);
  const order = await db.query<{ job: string }>("select job::integer from effects order by job % 2, nth");
  expect(order).toEqual(await db.query("select job::integer from effects order by job % 2, job"));
  expect(order).toHaveLength(count);
  expect(workers.flatMap(endings)).toEqual(Array.from({ length: count }, () => "succeeded"));
  expect(await db.query("select from graphile_worker._private_job_queues where locked_by is not null")).toEqual([]);
});

/** What takes a job away from the attempt that runs; gives the attempts that the job has then. */
const thieves: [string, (db: TestDatabase, id: string) => Promise<unknown>][] = [
  [
    "another worker",
    (db, id) => db.query("update graphile_worker._private_jobs set locked_by = 'pool-other' where id = $1", [id]),
  ],
  [
    "an operator who unlocked it",
    (db) =>
      db.query(
        "select graphile_worker.force_unlock_workers(array(select locked_by from graphile_worker._private_jobs))",
      ),
  ],
  [
    "a later attempt of the same pool",
    (db, id) => db.query("update graphile_worker._private_jobs set attempts = attempts + 1 where id = $1", [id]),
  ],
  ["a removal", (db, id) => db.query("delete from graphile_worker._private_jobs where id = $1", [id])],
];

test.each(thieves)("a job that was taken by %s is lost, and the transaction cannot commit", async (_name, steal) => {
  const db = await withEffects();
  const id = await add(db);
  let thrown: unknown;
  const rows: unknown[] = [];
  const worker = await startWorker(db, {
    work: async (_payload, helpers) => {
      if (rows.length > 0) throw new SnoozeError("1h"); // whoever has it now
      await steal(db, id);
      rows.push(await db.job(id));
      await transact(db, async (tx) => {
        await effect(tx, helpers);
        // Swallowed, and the commit below is a rollback all the same.
        await helpers.completeIn(tx).catch((error: unknown) => {
          thrown = error;
        });
      });
      rows.push(await db.job(id));
    },
  });
  await worker.nth("job:lost");
  expect(thrown).toBeInstanceOf(JobLostError);
  expect(await effects(db)).toEqual([]);
  expect(rows[1]).toEqual(rows[0]);
  expect(endings(worker)[0]).toBe("lost");
});

test("a run that knows that its job was taken cannot commit either, although it catches the error", async () => {
  const db = await withEffects();
  await add(db);
  let thrown: unknown;
  const worker = await startWorker(
    db,
    {
      work: async (_payload, helpers) => {
        await db.query("update graphile_worker._private_jobs set locked_by = 'pool-other'");
        await once(helpers.abortSignal!, "abort");
        await transact(db, async (tx) => {
          await effect(tx, helpers);
          thrown = await helpers.completeIn(tx).catch((error: unknown) => error);
        });
      },
    },
    { pollInterval: 50 },
  );
  await worker.nth("job:lost");
  expect(thrown).toBeInstanceOf(JobLostError);
  expect(await effects(db)).toEqual([]);
  expect(await db.jobs()).toMatchObject([{ locked_by: "pool-other", attempts: 1 }]);
  await worker.runner.stop();
});

test("a run that snoozed its job changes nothing any more when the same pool runs it again, as the same attempt", async () => {
  const db = await withEffects();
  await add(db);
  const attempts: number[] = [];
  const thrown: unknown[] = [];
  let first: TaskHelpers | undefined;
  const worker = await startWorker(db, {
    work: async (_payload, helpers) => {
      attempts.push(helpers.job.attempts);
      if (!first) {
        first = helpers;
        throw new SnoozeError(0);
      }
      await transact(db, async (tx) => {
        await effect(tx, first!);
        await first!.completeIn(tx);
      }).catch((error: unknown) => thrown.push(error));
      await transact(db, async (tx) => {
        await effect(tx, helpers);
        await helpers.completeIn(tx);
      });
    },
  });
  await until(async () => (await db.jobs()).length === 0);
  await worker.runner.stop();
  expect(attempts).toEqual([1, 1]);
  expect(thrown).toMatchObject([{ code: "JOB_LOST" }]);
  expect(await effects(db)).toHaveLength(1);
});

test("a run whose job was put off and claimed again by the same pool is lost", async () => {
  const db = await withEffects();
  const id = await add(db);
  const thrown: unknown[] = [];
  let first: TaskHelpers | undefined;
  const worker = await startWorker(
    db,
    {
      work: async (_payload, helpers) => {
        if (!first) {
          first = helpers;
          await once(helpers.abortSignal, "abort");
          await transact(db, async (tx) => {
            await helpers.completeIn(tx).catch((error: unknown) => thrown.push(error));
          }).catch(() => undefined);
          throw new Error("late");
        }
        await transact(db, async (tx) => {
          await effect(tx, helpers);
          await helpers.completeIn(tx);
        });
      },
    },
    { concurrency: 2, pollInterval: 50 },
  );
  await until(() => first);
  // The same pool, the same attempt: unlocked by hand and its attempt restored.
  await db.query("update graphile_worker._private_jobs set locked_by = null, locked_at = null, attempts = 0");
  await worker.nth("job:lost");
  // If it was claimed before the first run had ended, it rests.
  await until(async () => {
    await db.query("update graphile_worker._private_jobs set run_at = now() where locked_at is null");
    return worker.of("job:complete").length > 0;
  });
  expect(thrown).toMatchObject([{ code: "JOB_LOST" }]);
  expect(await effects(db)).toHaveLength(1);
  expect(await db.job(id)).toBeUndefined();
});

describe("a transactional task", () => {
  const taskOptions = { work: { transactional: true } };

  test("commits its rows, its jobs and the completion together", async () => {
    const db = await withEffects();
    await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          await helpers.addJob("later", {}, { runAt: new Date(Date.now() + 3_600_000) });
          expect(await db.jobs()).toHaveLength(1);
        },
      },
      { taskOptions },
    );
    await worker.completed(1);
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(await effects(db)).toHaveLength(1);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "later" }]);
  });

  test("leaves nothing behind if it throws, and its decision counts", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          await helpers.addJob("later", {});
          throw new Error("no");
        },
      },
      { taskOptions },
    );
    await worker.completed(1);
    expect(endings(worker)).toEqual(["failed"]);
    expect(await effects(db)).toEqual([]);
    expect(await db.jobs()).toMatchObject([{ id, last_error: expect.stringContaining("no") }]);
  });

  test("leaves nothing behind if it snoozes, and is snoozed", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          throw new SnoozeError("1h");
        },
      },
      { taskOptions },
    );
    await worker.nth("job:snoozed");
    expect(await effects(db)).toEqual([]);
    expect(await db.job(id)).toMatchObject({ attempts: 0, last_error: null, locked_by: null });
  });

  test.each(["commit", "rollback"])("fails for good if it ends its transaction itself with %s", async (end) => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          await helpers.tx!.query(end);
        },
      },
      { taskOptions },
    );
    await worker.completed(1);
    expect(endings(worker)).toEqual(["permanentlyFailed"]);
    expect(await db.job(id)).toMatchObject({
      attempts: 25,
      last_error: expect.stringContaining("has ended its transaction"),
    });
    expect(await effects(db)).toHaveLength(end === "commit" ? 1 : 0);
  });

  test("is lost if the job was taken, and changes nothing", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          await db.query("update graphile_worker._private_jobs set locked_by = 'pool-other'");
        },
      },
      { taskOptions },
    );
    await worker.nth("job:lost");
    expect(await effects(db)).toEqual([]);
    expect(await db.job(id)).toMatchObject({ locked_by: "pool-other" });
  });

  test("is done if the answer to its commit was lost", async () => {
    const db = await withEffects();
    const proxy = await startProxy(db.url);
    const worker = await startWorker(
      db,
      { work: async (_payload, helpers) => void (await effect(helpers.tx!, helpers)) },
      { taskOptions, connectionString: proxy.url },
    );
    const cut = proxy.cutAfter("commit\0");
    await add(db);
    await cut;
    await worker.completed(1);
    expect(endings(worker)).toEqual(["succeeded"]);
    expect(await effects(db)).toHaveLength(1);
    expect(await db.jobs()).toEqual([]);
  });

  test("is ended by the server if it takes too long", async () => {
    const db = await withEffects();
    const id = await add(db);
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await effect(helpers.tx!, helpers);
          await until(
            async () =>
              (
                await db.query(
                  "select from pg_stat_activity where datname = current_database() and state like 'idle in tr%'",
                )
              ).length === 0,
          );
        },
      },
      { taskOptions: { work: { transactional: true, transactionTimeout: 200 } } },
    );
    await worker.completed(1);
    expect(endings(worker)).toEqual(["failed"]);
    expect(await effects(db)).toEqual([]);
    expect(await db.job(id)).toMatchObject({ attempts: 1, locked_by: null });
  });
});
