import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { executorFor } from "../../src/client/transaction/executor-for.ts";
import { statement } from "../../src/db/statement.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { commitAnswer, startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { libraries } from "./libraries/all.ts";
import type { OpenLibrary } from "./libraries/library.ts";
import { pgClient } from "./libraries/pg.ts";

const count = 60;
/** Of each kind. */
const maxBlows = 6;
const seed = Number(process.env.HATHI_SEED ?? 17);

/** Written with whatever the library's transaction is. */
const addOne = statement<{ attempt: number }, object>({
  name: "add_one",
  values: ({ attempt }) => [attempt],
  text: "update counter set n = n + 1 where $1::integer > 0 returning n",
});

/** What libraries throw into the open when a connection breaks that they have handed out or forgotten; an application would have to live with it. */
function isTheirs(error: unknown): boolean {
  const { code, message = "", stack = "" } = error as Partial<Error> & { code?: string };
  const isBroken = code === "ECONNRESET" || code === "57P01" || /Connection terminated|Connection ended/.test(message);
  return isBroken || stack.includes("/node_modules/postgres/");
}

beforeAll(() => {
  const names = ["uncaughtException", "unhandledRejection"] as const;
  const listeners = names.map((name) => process.listeners(name as "uncaughtException"));
  for (const [index, name] of names.entries()) {
    process.removeAllListeners(name);
    process.on(name as "uncaughtException", (error, origin) => {
      if (!isTheirs(error)) for (const listener of listeners[index]!) listener(error, origin);
    });
  }
  return () => {
    for (const [index, name] of names.entries()) {
      process.removeAllListeners(name);
      for (const listener of listeners[index]!) process.on(name as "uncaughtException", listener);
    }
  };
});

describe.each(libraries)("a job that completes in a transaction of $name", (each) => {
  let db: TestDatabase;
  let library: OpenLibrary | undefined;

  beforeAll(async () => {
    db = await freshDatabase({ cleanUp: () => undefined });
    await db.query("create table counter (n integer not null)");
    await db.query("insert into counter values (0)");
  });

  afterAll(async () => {
    await library?.close().catch(() => undefined);
    await db.drop();
  });

  const sum = async () => (await db.query<{ n: number }>("select n from counter"))[0]!.n;
  /** Jobs that were added by jobs. */
  const followUps = async () =>
    (await db.jobs()).filter(({ task_identifier }) => task_identifier === "follow-up").map(({ payload }) => payload);
  const later = { runAt: new Date(Date.now() + 86_400_000) };
  const add = (jobs: number) =>
    db.query("select graphile_worker.add_job('work', max_attempts => 1000) from generate_series(1, $1::integer)", [
      jobs,
    ]);

  test("is lost if another worker has it, and the transaction cannot commit", async () => {
    library = await each.open(db.url);
    await add(1);
    let thrown: unknown;
    const worker = await startWorker(db, {
      work: async (_payload, helpers) => {
        await db.query("update graphile_worker._private_jobs set locked_by = 'another'");
        await library!.transaction(async (tx) => {
          await executorFor(tx, "public").run(addOne, { attempt: 1 });
          await helpers.completeIn(tx).catch((error: unknown) => {
            thrown = error;
          });
        });
      },
    });
    await worker.nth("job:lost");
    expect(thrown).toMatchObject({ code: "JOB_LOST" });
    expect(await sum()).toBe(0);
    await worker.runner.stop();
    await db.query("delete from graphile_worker._private_jobs");
    await library.close();
    library = undefined;
  });

  test("commits its rows and its follow-up job with the completion, or none of them", async () => {
    library = await each.open(db.url);
    await add(1);
    const afterRollback: unknown[] = [];
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          const { attempts } = helpers.job;
          if (attempts === 2) afterRollback.push(await sum(), await followUps());
          await library!.transaction(async (tx) => {
            await executorFor(tx, "public").run(addOne, { attempt: attempts });
            await helpers.withTransaction(tx).addJob("follow-up", { of: attempts }, later);
            await helpers.completeIn(tx);
            if (attempts === 1) throw new Error("after all");
          });
        },
      },
      { taskOptions: { work: { backoff: { type: "fixed", delay: 5 } } } },
    );
    await worker.completed(2);
    await worker.runner.stop();
    expect(worker.of("job:complete").map(({ outcome }) => outcome)).toEqual(["failed", "succeeded"]);
    expect(afterRollback).toEqual([0, []]);
    expect(await sum()).toBe(1);
    expect(await db.jobs()).toMatchObject([{ task_identifier: "follow-up", payload: { of: 2 } }]);
    await db.query("delete from graphile_worker._private_jobs");
    await db.query("update counter set n = 0");
    await library.close();
    library = undefined;
  });

  test(`adds exactly one for each of ${count} jobs, although connections break at any statement and answers to commits are lost`, async () => {
    const roll = dice(seed);
    const proxy = await startProxy(db.url);
    library = await each.open(proxy.url);
    await add(count);
    let isOver = false;
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          const done = library!.transaction(async (tx) => {
            await executorFor(tx, "public").run(addOne, { attempt: helpers.job.attempts });
            await helpers.withTransaction(tx).addJob("follow-up", { of: helpers.job.id }, later);
            await helpers.completeIn(tx);
          });
          try {
            await Promise.race([done, helpers.abortPromise]);
          } catch (error) {
            // A single client does not connect again, and postgres.js may never tell that a connection is gone.
            if (each === pgClient || helpers.abortSignal.aborted) library = await each.open(proxy.url);
            throw error;
          }
        },
      },
      {
        concurrency: 1,
        taskOptions: { work: { backoff: { type: "fixed", delay: 5 }, timeout: "2s", transactionTimeout: "3s" } },
      },
    );
    let swallowed = 0;
    let terminated = 0;
    const swallow = async () => {
      for (let blow = 0; blow < maxBlows && !isOver; blow++) {
        await Promise.race([
          proxy.cutInsteadOf(commitAnswer).then(() => swallowed++),
          until(() => isOver, { withinMs: 60_000 }),
        ]);
        await sleep(roll() * 50);
      }
    };
    const terminate = async () => {
      // One may find no connection to end.
      while (terminated < maxBlows && !isOver) {
        await sleep(20 + roll() * 80);
        const ended = await db.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where client_port = any ($1) and datname = current_database()",
          [proxy.ports()],
        );
        terminated += ended.length;
      }
    };
    const trouble = Promise.all([swallow(), terminate()]);
    let added = count;
    const isDone = async () => {
      if ((await db.jobs()).some(({ task_identifier }) => task_identifier === "work")) return false;
      if (swallowed > 0 && terminated > 0) return true;
      // On a busy machine all were done before anything has hit them.
      await add(10);
      added += 10;
      return false;
    };
    await until(isDone, { withinMs: 60_000, what: "all jobs are done, and both kinds of trouble have hit" });
    isOver = true;
    await trouble;
    await worker.completed(added);
    await worker.runner.stop();
    expect(await sum()).toBe(added);
    expect(new Set((await followUps()).map((payload) => (payload as { of: string }).of)).size).toBe(added);
    expect(await db.jobs()).toHaveLength(added);
    expect(worker.of("job:complete").filter(({ outcome }) => outcome === "succeeded")).toHaveLength(added);
  }, 90_000);
});
