import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { executorFor } from "../../src/client/transaction/executor-for.ts";
import { statement } from "../../src/db/statement.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { libraries } from "./libraries/all.ts";
import type { OpenLibrary } from "./libraries/library.ts";

const count = 150;
const seed = Number(process.env.HATHI_SEED ?? 17);

/** Written with whatever the library's transaction is. */
const addOne = statement<{ attempt: number }, object>({
  name: "add_one",
  values: ({ attempt }) => [attempt],
  text: "update counter set n = n + 1 where $1::integer > 0 returning n",
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

  test(`adds exactly one for each of ${count} jobs, although connections break at any statement and answers to commits are lost`, async () => {
    const roll = dice(seed);
    const proxy = await startProxy(db.url);
    library = await each.open(`${proxy.url}?application_name=once`);
    await add(count);
    let isOver = false;
    const worker = await startWorker(
      db,
      {
        work: async (_payload, helpers) => {
          await library!.transaction(async (tx) => {
            await executorFor(tx, "public").run(addOne, { attempt: helpers.job.attempts });
            await helpers.completeIn(tx);
          });
        },
      },
      { concurrency: 2, taskOptions: { work: { backoff: { type: "fixed", delay: 5 }, timeout: "20s" } } },
    );
    const swallow = async () => {
      while (!isOver) {
        await Promise.race([proxy.cutAfter(/commit;?\0/i), until(() => isOver, { withinMs: 60_000 })]);
        await sleep(roll() * 60);
      }
    };
    const terminate = async () => {
      while (!isOver) {
        await db.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'once' and datname = current_database()",
        );
        await sleep(30 + roll() * 100);
      }
    };
    const trouble = Promise.all([swallow(), terminate()]);
    await until(async () => (await db.jobs()).length === 0, { withinMs: 60_000 });
    isOver = true;
    await trouble;
    await worker.completed(count);
    await worker.runner.stop();
    expect(await sum()).toBe(count);
    expect(worker.of("job:complete").filter(({ outcome }) => outcome === "succeeded")).toHaveLength(count);
    expect(worker.of("job:error").length).toBeGreaterThan(0);
  }, 90_000);
});
