import type pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { Listener } from "../../src/db/listener.ts";
import { statement } from "../../src/db/statement.ts";
import { deferred } from "../../src/util/deferred.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 90_000 });

async function addJobs(db: TestDatabase, count: number, queue: string | null = null): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select (graphile_worker.add_job('work', '{"ms":20}', queue_name => $2)).id from generate_series(1, $1)`,
    [count, queue],
  );
  return rows.map(({ id }) => id);
}

/** Waits until the database knows of no job any more. */
function drained(db: TestDatabase): Promise<unknown> {
  return until(async () => (await db.jobs()).length === 0, { what: "every job is done", withinMs: 60_000 });
}

async function expectNoLocks(db: TestDatabase): Promise<void> {
  expect(
    await db.query(`
      select id::text from graphile_worker._private_jobs where locked_at is not null
      union all select queue_name from graphile_worker._private_job_queues where locked_at is not null`),
  ).toEqual([]);
}

async function expectOneRunEach(workers: readonly WorkerProcess[], ids: readonly string[]): Promise<void> {
  const counts = (): Map<string, number> => countRuns(allRuns(workers));
  await until(() => ids.every((id) => counts().has(id)), { what: "every job has run" });
  expect(ids.filter((id) => counts().get(id) !== 1)).toEqual([]);
}

test("a claim whose answer is lost leaves no job locked, and each runs once", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const worker = await startWorker({ connectionString: proxy.url, concurrency: 5 });
  for (let round = 0; round < 3; round++) {
    // Prepared statements travel by name.
    const cut = proxy.cutAfter("claim_jobs");
    const ids = [...(await addJobs(db, 20)), ...(await addJobs(db, 5, "queue"))];
    await cut;
    await drained(db);
    await expectOneRunEach([worker], ids);
  }
  expect(await worker.stop()).toBe(0);
  await expectNoLocks(db);
});

test("a settle whose answer is lost is not taken for a lost job, and frees no queue that is ours again", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const behind = await startWorker({ connectionString: proxy.url, concurrency: 5 });
  const direct = await startWorker({ connectionString: db.url, concurrency: 5 });
  const ids: string[] = [];
  for (let round = 0; round < 3; round++) {
    let isCut = false;
    void proxy.cutAfter("complete_jobs").then(() => {
      isCut = true;
    });
    // Both are quick, so there has to be enough for both.
    await until(async () => {
      for (const queue of ["a", "b", null]) ids.push(...(await addJobs(db, 8, queue)));
      return isCut;
    });
  }
  await drained(db);
  for (const worker of [behind, direct]) expect(await worker.stop()).toBe(0);
  await expectOneRunEach([behind, direct], ids);
  expect(findOverlaps(allRuns([behind, direct]))).toEqual([]);
  expect(behind.lost()).toEqual([]);
  await expectNoLocks(db);
});

test("connections that are reset again and again cost no job", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const workers = await Promise.all([1, 2].map(() => startWorker({ connectionString: proxy.url, concurrency: 10 })));
  const ids = [...(await addJobs(db, 1_000)), ...(await addJobs(db, 60, "queue"))];
  for (let share = 0.1; share < 0.9; share += 0.1) {
    await until(() => allRuns(workers).length >= ids.length * share);
    proxy.cut();
  }
  await drained(db);
  for (const worker of workers) expect(await worker.stop()).toBe(0);
  await expectOneRunEach(workers, ids);
  expect(findOverlaps(allRuns(workers))).toEqual([]);
  await expectNoLocks(db);
});

test("a network that goes silent stops nothing for good", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const pool = { connectionString: proxy.url, max: 5, query_timeout: 1_000, connectionTimeoutMillis: 1_000 };
  const worker = await startWorker({ pool, concurrency: 5 });
  const before = await addJobs(db, 200);
  await until(() => allRuns([worker]).length > 50);
  proxy.blackhole();
  await until(() => worker.logged(/Lost the database/).length > 0);
  const after = await addJobs(db, 20);
  proxy.restore();
  await drained(db);
  expect(worker.isAlive()).toBe(true);
  expect(await worker.stop()).toBe(0);
  await expectOneRunEach([worker], [...before, ...after]);
  await expectNoLocks(db);
});

test("a statement on a connection that died without a word gives up, and its backend is told to stop", async () => {
  const db = await freshDatabase();
  const pool = testPool(db.url, 2);
  const database = poolDatabase(pool, { schema: db.schema, preparedStatements: false });
  const slow = statement<undefined, { done: number }>({
    name: "slow",
    patienceMs: 300,
    values: () => [],
    text: "select 1 as done from pg_sleep(60)",
  });
  await expect(database.run(slow, undefined)).rejects.toThrow("Query read timeout");
  await until(
    async () =>
      (
        await db.query(
          "select from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid() and state = 'active'",
        )
      ).length === 0,
  );
});

test("a statement that took too long behind a pooler never cancels what another client's backend does", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const victim = await db.pool.connect();
  const { rows } = await victim.query<{ pid: number }>("select pg_backend_pid() as pid");
  const holder = await db.pool.connect();
  await holder.query("select pg_advisory_lock(1)");
  const waiting = victim.query("select pg_advisory_lock(1)");
  proxy.tellPid(rows[0]!.pid);

  const database = poolDatabase(testPool(proxy.url, 2), { schema: db.schema, preparedStatements: false });
  const slow = statement<undefined, never>({
    name: "slow",
    patienceMs: 300,
    values: () => [],
    text: "select pg_advisory_lock(1)",
  });
  await expect(database.run(slow, undefined)).rejects.toThrow("Query read timeout");
  await until(() => proxy.cancelledPids.length > 0, { what: "the server was asked to cancel" });
  // Whatever was sent before this statement has had its effect by now.
  await database.withPgClient((client) => client.query("select 1"));
  await holder.query("select pg_advisory_unlock(1)");
  await expect(waiting).resolves.toBeDefined();
  for (const client of [victim, holder]) client.release(true);
});

test("a LISTEN connection that died without a word is replaced", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const connections: pg.PoolClient[] = [];
  const pool = testPool(proxy.url, 4);
  const heard: string[] = [];
  const errors: unknown[] = [];
  const listener = new Listener({
    connect: async () => {
      const client = await pool.connect();
      connections.push(client);
      return client;
    },
    isLent: true,
    notify: (channel, payload) => db.query("select pg_notify($1, $2)", [channel, payload]),
    onConnecting: () => undefined,
    onConnected: () => undefined,
    onListening: () => undefined,
    onNotification: ({ payload }) => void heard.push(payload ?? ""),
    onError: (error) => void errors.push(error),
    onReleased: () => undefined,
    onDeaf: () => expect.unreachable("it hears well"),
    checkMs: 200,
    patienceMs: 300,
  });
  listener.start();
  onTestFinished(() => listener.stop());
  await until(() => listener.isListening);
  proxy.blackholeOpen();
  await until(() => connections.length > 1 && listener.isListening, { what: "it listens on another connection" });
  expect(errors).toMatchObject([{ message: "Query read timeout" }]);
  await db.query(`select pg_notify('jobs:insert', 'after')`);
  await until(() => heard.includes("after"));
});

test("a connection that is lost during the test of its hearing is not taken for a deaf one", async () => {
  const db = await freshDatabase();
  const pool = testPool(db.url, 2);
  const clients: pg.PoolClient[] = [];
  const notified = deferred();
  const listener = new Listener({
    connect: async () => {
      const client = await pool.connect();
      clients.push(client);
      return client;
    },
    isLent: true,
    // The first test message is lost together with the connection that was to hear it.
    notify: async (channel, payload) => {
      if (clients.length > 1)
        return notified.resolve(void (await db.query("select pg_notify($1, $2)", [channel, payload])));
      const pid = (clients[0] as unknown as { processID: number }).processID;
      await db.query("select pg_terminate_backend($1)", [pid]);
    },
    onConnecting: () => undefined,
    onConnected: () => undefined,
    onListening: () => undefined,
    onNotification: () => undefined,
    onError: () => undefined,
    onReleased: () => undefined,
    onDeaf: () => expect.unreachable("it hears well"),
    hearMs: 300,
  });
  listener.start();
  onTestFinished(() => listener.stop());
  await notified.promise;
  await sleep(600); // what must not happen would happen after 300 ms
  expect(listener.isListening).toBe(true);
  expect(clients).toHaveLength(2);
});
