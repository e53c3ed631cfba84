import type { PoolClient } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { clientDatabase, type Database } from "../../../src/db/database.ts";
import { type ClaimedRow, type ClaimParams, claimJobs, type Mark } from "../../../src/db/statements/claim.ts";
import { runOnce } from "../../../src/runner/run.ts";
import { blockEventLoop } from "../../support/block.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { heldTask, never, startPool, startWorker } from "../kit.ts";

const quiet = { noHandleSignals: true } as const;

function compute(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("jobs start in the order of priority, then run_at, then id", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job('t', json_build_object('n', n), run_at => now() - run_at, priority => priority)
    from (values
      (1, interval '1 second', 5), (2, interval '3 seconds', 0), (3, interval '2 seconds', 0),
      (4, interval '3 seconds', 0), (5, interval '9 seconds', 5), (6, interval '0', -1), (7, interval '0', 32767)
    ) as spec (n, run_at, priority)`);
  const order: number[] = [];
  await runOnce({ ...quiet, connectionString: db.url, taskList: { t: ({ n }) => void order.push(n) } });
  expect(order).toEqual([6, 2, 4, 3, 5, 1, 7]);
});

test("order holds over many claims, among jobs of tasks that this worker lacks and of queues that are held", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job(
      case when n % 3 = 0 then 'other' else 't' end, json_build_object('n', n), priority => n % 2,
      queue_name => case when n % 50 = 0 then 'held' end)
    from generate_series(1, 1500) as n`);
  await db.query(
    "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-x' where queue_name = 'held'",
  );
  const order: number[] = [];
  await runOnce({ ...quiet, connectionString: db.url, taskList: { t: ({ n }) => void order.push(n) } });
  const ours = Array.from({ length: 1500 }, (_, index) => index + 1).filter((n) => n % 3 !== 0 && n % 50 !== 0);
  const expected = [...ours.filter((n) => n % 2 === 0), ...ours.filter((n) => n % 2 === 1)];
  expect(order.toSorted((a, b) => a - b)).toEqual(ours);
  expect(order).toEqual(expected);
});

test("a task that once keeps the event loop to itself does not upset the order of what is held ahead", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', json_build_object('n', n)) from generate_series(1, 9000) as n");
  const order: number[] = [];
  await runOnce({
    ...quiet,
    connectionString: db.url,
    taskList: {
      t: ({ n }) => {
        order.push(n);
        if (n % 700 === 0) blockEventLoop(120);
      },
    },
  });
  expect(order).toEqual(Array.from({ length: 9000 }, (_, index) => index + 1));
}, 120_000);

test.each([
  ["compute", compute],
  ["wait for something outside", blockEventLoop],
])(
  "a run until empty comes to what it has returned because tasks %s, though no notification tells it",
  async (_what, keep) => {
    const db = await freshDatabase();
    await db.query("select graphile_worker.add_job('t', json_build_object('n', n)) from generate_series(1, 600) as n");
    await db.query(`
    create table returned (id bigint);
    create function note_return() returns trigger language plpgsql as
      'begin insert into public.returned values (new.id); return null; end';
    create trigger note_return after update on graphile_worker._private_jobs
      for each row when (new.attempts < old.attempts) execute function note_return()`);
    let done = 0;
    await runOnce({
      ...quiet,
      connectionString: db.url,
      taskList: {
        t: ({ n }) => {
          done++;
          if (n > 300 && n < 312) keep(120);
        },
      },
    });
    expect(await db.query("select from returned")).not.toHaveLength(0);
    expect(done).toBe(600);
  },
);

test("a job carries its times as the driver gives them, infinite ones included", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', run_at => '-infinity')");
  await db.query("select graphile_worker.add_job('t', run_at => '2001-02-03 04:05:06.789999Z')");
  const jobs: unknown[] = [];
  const stored = await db.jobs();
  await runOnce({ ...quiet, connectionString: db.url, taskList: { t: (_, { job }) => void jobs.push(job) } });
  expect(jobs).toMatchObject(stored.map(({ run_at, created_at, updated_at }) => ({ run_at, created_at, updated_at })));
  expect(jobs).toMatchObject([{ run_at: -Infinity }, { run_at: new Date("2001-02-03T04:05:06.789Z") }]);
});

test("jobs of tasks that this worker does not have are left alone", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(db, { mine: () => undefined });
  const theirs = await runner.addJob("theirs", {});
  await runner.addJob("mine", {});
  await completed(1);
  await runner.stop();
  expect(await db.jobs()).toMatchObject([{ id: theirs.id, attempts: 0, locked_by: null }]);
});

test("a job that is added while the worker is idle starts at once, not at the next poll", async () => {
  const db = await freshDatabase();
  const { runner, nth, completed } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty");
  for (let n = 1; n <= 5; n++) {
    await runner.addJob("t", { n });
    await completed(n);
  }
});

test("a job that is added between the first look and the moment LISTEN is heard is not missed", async () => {
  const db = await freshDatabase();
  const { completed } = await startWorker(
    db,
    { t: () => undefined },
    {
      preset: {
        plugins: [
          {
            name: "adds-late",
            version: "0.0.0",
            worker: {
              hooks: {
                startWorker: async () => {
                  await db.query("select pg_sleep(0)");
                },
              },
            },
          },
        ],
      },
    },
  );
  await db.query("select graphile_worker.add_job('t')");
  await completed(1);
});

test("a scheduled job starts when it is due, though the next poll is far away", async () => {
  const db = await freshDatabase();
  const startedAt = new Map<string, Date>();
  const { runner, completed, nth } = await startWorker(db, {
    t: (_payload, { job }) => void startedAt.set(job.id, new Date()),
  });
  await nth("worker:getJob:empty");
  const due = new Date(Date.now() + 700);
  const late = await runner.addJob("t", {}, { runAt: new Date(due.getTime() + 300) });
  const early = await runner.addJob("t", {}, { runAt: due });
  await completed(2);
  expect(startedAt.get(early.id)!.getTime()).toBeGreaterThanOrEqual(due.getTime());
  expect(startedAt.get(early.id)!.getTime()).toBeLessThan(startedAt.get(late.id)!.getTime());
});

test("a job that was scheduled before the worker started is known and starts when it is due", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('other', run_at => now() + interval '300 ms')");
  await db.query("select graphile_worker.add_job('t', run_at => now() + interval '800 ms')");
  const { completed } = await startWorker(db, { t: () => undefined });
  await completed(1);
});

test("a failed job is tried again when its back-off is over, though the next poll is far away", async () => {
  const db = await freshDatabase();
  let tries = 0;
  const { runner, nth } = await startWorker(db, {
    t: () => {
      tries++;
      if (tries === 1) throw new Error("once");
    },
  });
  await runner.addJob("t", {});
  await nth("job:success");
  expect(tries).toBe(2);
});

test.each([
  ["with useNodeTime the clock of this process decides what is due", true],
  ["without useNodeTime the clock of the database decides what is due", false],
])("%s", async (_name, useNodeTime) => {
  const db = await freshDatabase();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000, shouldAdvanceTime: true });
  onTestFinished(() => void vi.useRealTimers());
  const { runner, completed, nth, of } = await startWorker(db, { t: () => undefined }, { useNodeTime });
  const job = await runner.addJob("t", {});
  await completed(1);
  const [row] = await db.query<{ ahead: number }>("select extract(epoch from $1 - now())::int as ahead", [job.run_at]);
  if (useNodeTime) expect(row!.ahead).toBeGreaterThan(3_000);
  else expect(row!.ahead).toBeLessThan(60);
  const looks = of("worker:getJob:empty").length;
  await db.query("select graphile_worker.add_job('t', run_at => now() + interval '30 minutes')");
  if (useNodeTime) await completed(2);
  else await nth("worker:getJob:empty", looks + 1);
  await runner.stop();
  expect(await db.jobs()).toHaveLength(useNodeTime ? 0 : 1);
});

test("polling finds jobs where nobody is told of them", async () => {
  const db = await freshDatabase();
  const { runner, completed, names } = await startWorker(
    db,
    { t: () => undefined },
    { useNotifications: false, pollInterval: 50 },
  );
  await runner.addJob("t", {});
  await completed(1);
  expect(names()).not.toContain("pool:listen:connecting");
});

test("a poll interval beyond what timers can hold is kept, not turned into a busy loop", async () => {
  const db = await freshDatabase();
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const { runner, completed } = await startWorker(db, { t: () => undefined }, { pollInterval: 2 ** 40 });
  await runner.addJob("t", {});
  await completed(1);
  expect(warnings).not.toContain("TimeoutOverflowWarning");
});

test("every job runs exactly once, whatever the number of pools", async () => {
  const db = await freshDatabase();
  const runs = new Map<string, number>();
  const tasks = {
    t: (_: unknown, { job }: { job: { id: string } }) => void runs.set(job.id, (runs.get(job.id) ?? 0) + 1),
  };
  const pools = [1, 2, 3].map(() => startPool(db, tasks, { concurrency: 5 }));
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 2000)");
  await until(async () => (await db.jobs()).length === 0, { what: "all jobs are done" });
  await Promise.all(pools.map(({ pool }) => pool.gracefulShutdown()));
  expect(runs.size).toBe(2000);
  expect([...runs.values()].every((count) => count === 1)).toBe(true);
});

test("slow jobs are not claimed ahead: what one pool cannot start, another one runs", async () => {
  const db = await freshDatabase();
  const one = heldTask();
  const other = heldTask();
  startPool(db, { t: one.task });
  await db.query("select graphile_worker.add_job('t')");
  await one.begun(1);
  startPool(db, { t: other.task });
  await db.query("select graphile_worker.add_job('t')");
  await other.begun(1);
});

test("buffered jobs that stand still are returned with their attempt restored", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const one = startPool(db, { quick: () => undefined, slow: held.task }, { concurrency: 2 });
  await db.query("select graphile_worker.add_job('quick') from generate_series(1, 500)");
  await until(() => one.of("job:complete").length >= 500, { what: "the pool has seen many quick jobs" });
  await db.query("select graphile_worker.add_job('slow') from generate_series(1, 20)");
  await held.begun(2);
  await until(async () => (await db.jobs()).filter(({ locked_by }) => locked_by !== null).length === 2, {
    what: "only the running jobs are locked",
  });
  expect((await db.jobs()).filter(({ locked_by }) => locked_by === null)).toSatisfy(
    (jobs: { attempts: number }[]) => jobs.length === 18 && jobs.every(({ attempts }) => attempts === 0),
  );
});

test("a long queue does not keep the other slots idle", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { of } = startPool(db, { quick: () => undefined, slow: held.task, free: () => undefined }, { concurrency: 4 });
  await db.query("select graphile_worker.add_job('quick') from generate_series(1, 1000)");
  await until(() => of("job:complete").length >= 1000, { what: "the pool trusts that jobs are quick" });
  await db.query("select graphile_worker.add_job('slow', queue_name => 'q') from generate_series(1, 200)");
  await held.begun(1);
  await db.query("select graphile_worker.add_job('free')");
  await until(() => of("job:success").some(({ job }) => job.task_identifier === "free"), { what: "the free job ran" });
  expect(held.started).toHaveLength(1);
});

test.each([{ concurrency: 1 }, { concurrency: 4 }])(
  "runOnce with %o ends when all is done, not at a poll",
  async (options) => {
    const db = await freshDatabase();
    let runs = 0;
    await db.query("select graphile_worker.add_job('t', queue_name => 'q' || n % 3) from generate_series(1, 50) as n");
    await runOnce({
      ...quiet,
      ...options,
      connectionString: db.url,
      pollInterval: never,
      taskList: {
        t: async (_payload, { addJob, job }) => {
          runs++;
          if (job.attempts === 1 && runs <= 10) await addJob("t", {});
        },
      },
    });
    expect(runs).toBe(60);
    expect(await db.jobs()).toEqual([]);
  },
);

test("a claim that hangs in the middle, as that of a stopped process may, holds up nobody else", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 300)");
  await claimUnfinished(db, { poolId: "pool-hung", wanted: 200 });
  const { completed, lines } = await startWorker(db, { t: () => undefined }, { concurrency: 20 });
  await completed(100);
  expect(lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("a claim that starts at its marks reads nothing that lies before them", async () => {
  const db = await freshDatabase();
  const [holder, client] = [await db.pool.connect(), await db.pool.connect()];
  onTestFinished(() => {
    for (const each of [holder, client]) each.release(true);
  });
  await holder.query("begin isolation level repeatable read; select pg_current_xact_id()");
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 3000)");
  await db.query("delete from graphile_worker._private_jobs where id < 3000");
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 20)");
  await client.query("begin");
  const database = clientDatabase(client, { schema: db.schema, preparedStatements: false });
  const [row] = await db.query<{ run_at: string }>(
    "select to_json(run_at) #>> '{}' as run_at from graphile_worker._private_jobs where id = 3000",
  );
  const marks: Mark[] = [[0, row!.run_at, "3000"]];
  expect(await claim(database, { wanted: 2, marks })).toEqual(["3001", "3002"]);
  expect(await indexEntriesRead(client)).toBeLessThan(100);
  expect(await claim(database, { wanted: 2 })).toEqual(["3000", "3003"]);
  expect(await indexEntriesRead(client)).toBeGreaterThan(3000);
});

/** Claims in a transaction that stays open until the test is over. */
async function claimUnfinished(db: TestDatabase, params: Partial<ClaimParams>): Promise<void> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release(true));
  await client.query("begin");
  await claim(clientDatabase(client, { schema: db.schema, preparedStatements: false }), params);
}

/** By this transaction, in the index that keeps the order; those of rows that are gone count like others. */
async function indexEntriesRead(client: PoolClient): Promise<number> {
  const { rows } = await client.query(
    "select pg_stat_get_xact_tuples_returned('graphile_worker._hathi_jobs_by_task'::regclass)::int as read",
  );
  return rows[0].read;
}

async function claim(database: Database, params: Partial<ClaimParams>): Promise<string[]> {
  const [result] = await database.run(claimJobs, {
    poolId: "pool",
    taskIds: [1],
    wanted: 10,
    perQueue: 1,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
    ...params,
  });
  return (JSON.parse(result?.jobs ?? "[]") as ClaimedRow[]).map(([id]) => id);
}

test.each([{}, { concurrency: { limit: 50 } }])(
  "a retry that is due before the answer of a claim under way has come is found all the same (%o)",
  async (options) => {
    const db = await freshDatabase();
    const worker = await startWorker(
      db,
      { flaky: (_payload, { job }) => (job.attempts < 4 ? Promise.reject(new Error("not yet")) : undefined) },
      { concurrency: 3, taskOptions: { flaky: { backoff: () => 0, ...options } } },
    );
    const over = new AbortController();
    // Claims are under way all the time; the worker does not poll.
    const nudging = (async () => {
      while (!over.signal.aborted) await db.query("select pg_notify('jobs:insert', '{\"count\":1}')");
    })();
    for (let nth = 0; nth < 40; nth++) {
      await db.query("select graphile_worker.add_job('flaky')");
      if (nth === 20) over.abort();
      await until(async () => (await db.jobs()).length === 0, { what: `job ${nth} has succeeded`, withinMs: 20_000 });
    }
    await nudging;
    await worker.runner.stop();
  },
);
