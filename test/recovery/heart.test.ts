import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { RecoveryOptions } from "../../src/config/recovery-options.ts";
import { connectDirectly } from "../../src/db/direct-client.ts";
import { beat } from "../../src/db/statements/heartbeat.ts";
import { makeWorkerUtils, type Runner, type RunnerOptions, run } from "../../src/index.ts";
import { HeartbeatConnection, type HeartbeatConnectionOptions } from "../../src/recovery/heartbeat-connection.ts";
import { deferred } from "../../src/util/deferred.ts";
import { blockEventLoop } from "../support/block.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { addJob, quickly, registered } from "./kit.ts";

/** Nobody is to die here, however slowly the thread starts. */
const quick: RecoveryOptions = { ...quickly, heartbeatInterval: 100, sweepThreshold: 30_000, crashGrace: 10_000 };

const advisoryLocks = `
  from pg_locks
  where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;

async function start(
  database: TestDatabase,
  options: RunnerOptions = {},
): Promise<{ runner: Runner; lines: { message: string }[]; stop(): Promise<void> }> {
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    ...(options.pgPool ? {} : { connectionString: database.url }),
    recovery: quick,
    taskList: { task: () => undefined },
    noHandleSignals: true,
    logger,
    ...options,
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= runner.stop());
  onTestFinished(() => stop().catch(() => undefined)); // it may have stopped by itself
  return { runner, lines, stop };
}

function beatsAfter(database: TestDatabase, moment: Date): Promise<unknown> {
  return until(
    () =>
      database
        .query("select from graphile_worker._private_workers where last_heartbeat_at > $1", [moment])
        .then(({ length }) => length > 0),
    { what: "a beat after this moment" },
  );
}

async function databaseNow(database: TestDatabase): Promise<Date> {
  return (await database.query<{ now: Date }>("select clock_timestamp() as now"))[0]!.now;
}

test("a worker is registered before it claims, with what others want to know about it", async () => {
  const database = await freshDatabase();
  const seen = deferred<unknown[]>();
  await addJob(database, "task");
  await start(database, {
    concurrency: 3,
    appVersion: "1.2.3",
    taskList: {
      task: async (_payload, { job, query }) =>
        seen.resolve(
          (
            await query(
              "select metadata - 'loopDelayMs' as metadata from graphile_worker._private_workers where id = $1",
              [job.locked_by],
            )
          ).rows,
        ),
      other: () => undefined,
    },
  });
  expect(await seen.promise).toEqual([
    {
      metadata: {
        pid: process.pid,
        hostname: expect.any(String),
        version: expect.stringMatching(/^\d/),
        appVersion: "1.2.3",
        concurrency: 3,
        migration: expect.any(Number),
        tasks: ["task", "other"],
      },
    },
  ]);
});

/** The next heartbeat writes over what one reported, so each is kept. */
async function keepDelays(database: TestDatabase): Promise<void> {
  await database.query(`
    create table delays (ms integer);
    create function keep_delay() returns trigger language plpgsql as
      'begin insert into public.delays values ((new.metadata ->> ''loopDelayMs'')::integer); return null; end';
    create trigger keep_delay after update on graphile_worker._private_workers for each row execute function keep_delay()`);
}

async function isTold(database: TestDatabase, leastMs: number): Promise<boolean> {
  const [row] = await database.query<{ ms: number | null }>("select max(ms) as ms from delays");
  return (row?.ms ?? 0) >= leastMs;
}

test("a heartbeat tells by how much the event loop was late", async () => {
  const database = await freshDatabase();
  const hasEnded = deferred<void>();
  const blockMs = 700;
  await keepDelays(database);
  await start(database, {
    taskList: {
      compute: () => {
        blockEventLoop(blockMs);
        hasEnded.resolve();
      },
    },
  });
  await addJob(database, "compute");
  await hasEnded.promise;
  await until(() => isTold(database, blockMs - 100), { what: "a beat that tells of the block" });
});

test("a delay of the event loop is reported by the next heartbeat that arrives, if the first is lost", async () => {
  const database = await freshDatabase();
  const [hasStarted, mayBlock, hasEnded] = [deferred(), deferred(), deferred()];
  const blockMs = 700;
  await keepDelays(database);
  await start(database, {
    taskList: {
      compute: async () => {
        hasStarted.resolve();
        await mayBlock.promise;
        blockEventLoop(blockMs);
        hasEnded.resolve();
      },
    },
  });
  await addJob(database, "compute");
  await hasStarted.promise;
  // While the row is locked each heartbeat waits for it, runs out of time and takes its connection with it.
  const client = await database.pool.connect();
  onTestFinished(() => client.release());
  await client.query("begin");
  await client.query("select from graphile_worker._private_workers for update");
  const waiting = async (): Promise<{ readonly pid: number } | undefined> =>
    (
      await database.query<{ pid: number }>(
        "select pid from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0",
      )
    )[0];
  const isOther = async (pid: number): Promise<{ readonly pid: number } | undefined> => {
    const found = await waiting();
    return found && found.pid !== pid ? found : undefined;
  };
  const before = await until(waiting, { what: "a heartbeat that waits" });
  mayBlock.resolve();
  await hasEnded.promise;
  const reporting = await until(() => isOther(before.pid), { what: "a heartbeat that was sent after the block" });
  await until(() => isOther(reporting.pid), { what: "the next one" });
  await client.query("commit");
  await until(() => isTold(database, blockMs - 100), { what: "a beat that tells of the block" });
});

test("without the option nobody is registered", async () => {
  const database = await freshDatabase();
  const id = await addJob(database, "task");
  await start(database, { recovery: false });
  await until(async () => (await database.job(id)) === undefined);
  expect(await registered(database)).toEqual([]);
});

test("a worker deregisters when its last job has ended, not when it is told to stop", async () => {
  const database = await freshDatabase();
  const [started, release] = [deferred(), deferred()];
  const { stop } = await start(database, {
    taskList: {
      task: async () => {
        started.resolve();
        await release.promise;
      },
    },
  });
  await addJob(database, "task");
  await started.promise;
  const [id] = await registered(database);
  const stopping = stop();
  await beatsAfter(database, await databaseNow(database));
  expect(await registered(database)).toEqual([id]);
  release.resolve();
  await stopping;
  expect(await registered(database)).toEqual([]);
  expect(await database.query("select id from graphile_worker._hathi_former_workers")).toEqual([{ id }]);
});

test("a beat that fails is tried again on a new connection, and the worker stays who it is", async () => {
  const database = await freshDatabase();
  const { lines } = await start(database);
  const held = (): Promise<{ pid: number }[]> =>
    database.query(`select pid ${advisoryLocks} and granted and mode = 'ExclusiveLock'`);
  const before = await until(async () => {
    const [lock] = await held();
    return lock?.pid;
  });
  const ids = await registered(database);
  await database.query("select pg_terminate_backend($1)", [before]);
  await until(async () => {
    const [lock] = await held();
    return lock !== undefined && lock.pid !== before;
  });
  await beatsAfter(database, await databaseNow(database));
  expect(await registered(database)).toEqual(ids);
  expect(lines.filter(({ message }) => /taken for dead/.test(message))).toEqual([]);
});

test("a worker that was buried alive takes a new id and goes on", async () => {
  const database = await freshDatabase();
  const { lines } = await start(database);
  const [before] = await until(async () => (await registered(database)).length === 1 && (await registered(database)));
  await database.query("delete from graphile_worker._private_workers");
  const after = await until(async () => {
    const [id] = await registered(database);
    return id !== before && id;
  });
  expect(after).toMatch(/^pool-[0-9a-f]{18}$/);
  await until(() => lines.some(({ message }) => message.includes(`goes on as ${after}`)));
  const ids = await Promise.all(Array.from({ length: 5 }, () => addJob(database, "task")));
  await until(async () => (await database.jobs()).every(({ id }) => !ids.includes(id)));
});

test("a burial waits for no claim and a claim for no burial: a sweep skips a worker that is claiming", async () => {
  const database = await freshDatabase();
  const { runner } = await start(database, { recovery: { ...quick, sweepInterval: 3_600_000 } });
  const [before] = await until(async () => (await registered(database)).length === 1 && (await registered(database)));
  // Claims stay in the database until we let them go on. They do not wait for a lock, since they would give up after a moment.
  await database.pool.query(`
    create function wait() returns trigger language plpgsql as
      'begin while not pg_try_advisory_xact_lock_shared(42) loop perform pg_sleep(0.01); end loop; return new; end';
    create trigger wait before update on graphile_worker._private_jobs for each row
      when (new.locked_by is not null) execute function wait();`);
  const brake = await database.pool.connect();
  onTestFinished(() => brake.release());
  await brake.query("select pg_advisory_lock(42)");
  const id = await addJob(database, "task", {}, { queue: "q" });
  await until(
    async () =>
      (
        await database.query(
          "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
        )
      ).length > 0,
  );
  const utils = await makeWorkerUtils({ connectionString: database.url });
  onTestFinished(() => utils.release());
  // Everybody's heartbeat is older than this.
  const swept = await until(async () => {
    const result = await utils.sweepStaleWorkers({ sweepThreshold: 2 });
    return result.isDone && result; // the worker itself may be sweeping
  });
  expect(swept.workerIds).toEqual([]);
  await brake.query("select pg_advisory_unlock(42)");
  await until(async () => (await database.job(id)) === undefined);
  expect(await registered(database)).toEqual([before]);
  await runner.stop();
});

test("a worker that was buried claims nothing under its old id, however long it takes to find out", async () => {
  const database = await freshDatabase();
  const owners: unknown[] = [];
  const heartbeatInterval = 3_600_000; // it finds out because it wants to claim
  await start(database, {
    recovery: { ...quick, heartbeatInterval, sweepThreshold: 2 * heartbeatInterval },
    taskList: { task: (_payload, { job }) => void owners.push(job.locked_by) },
  });
  const [before] = await until(async () => (await registered(database)).length === 1 && (await registered(database)));
  await until(async () => (await database.query("select from graphile_worker._hathi_worker_lines")).length === 1);
  await database.query("delete from graphile_worker._private_workers");
  const id = await addJob(database, "task");
  await until(async () => (await database.job(id)) === undefined);
  expect(owners).toEqual(await registered(database));
  expect(owners).not.toContain(before);
});

test("a breaking change of the schema is noticed at the next beat, even where notifications are not heard", async () => {
  const database = await freshDatabase();
  const { runner, lines } = await start(database, { useNotifications: false });
  onTestFinished(() => {
    process.exitCode = 0;
  });
  await until(async () => (await registered(database)).length === 1);
  await database.query("insert into graphile_worker.migrations (id, breaking) values (21, true)");
  await runner.promise;
  expect(process.exitCode).toBe(57);
  expect(lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/breaking migration.*exit code 57/));
  expect(await registered(database)).toEqual([]);
});

test("a pool of the user's own is enough: the beating connection is made from its options", async () => {
  const database = await freshDatabase();
  const url = new URL(database.url);
  const pgPool = new pg.Pool({
    host: url.hostname,
    port: Number(url.port),
    user: url.username,
    password: decodeURIComponent(url.password),
    database: database.name,
    max: 2,
  });
  pgPool.on("error", () => undefined); // its last connections may still be open when the database is dropped
  const { stop, lines } = await start(database, { pgPool });
  await until(async () => (await database.query("select from graphile_worker._hathi_worker_lines")).length === 1);
  expect(lines.filter(({ message }) => /main thread/.test(message))).toEqual([]);
  await stop();
  await pgPool.end();
});

test("where a thread cannot be had, beats come from the main one and a warning says what that means", async () => {
  const database = await freshDatabase();
  const url = new URL(database.url);
  const pgPool = new pg.Pool({
    connectionString: database.url,
    // A function cannot be handed to another thread.
    password: () => decodeURIComponent(url.password),
  });
  pgPool.on("error", () => undefined);
  const { stop, lines } = await start(database, { pgPool });
  await until(async () => (await database.query("select from graphile_worker._hathi_worker_lines")).length === 1);
  await beatsAfter(database, await databaseNow(database));
  expect(lines.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/Heartbeats run on the main thread/),
  );
  await stop();
  expect(await registered(database)).toEqual([]);
  await pgPool.end();
});

function openLine(
  database: TestDatabase,
  connect = () => connectDirectly(database.url),
  former?: HeartbeatConnectionOptions["former"],
): Promise<HeartbeatConnection> {
  const limits = { statementMs: 5_000, silenceMs: 60_000 };
  return HeartbeatConnection.open({ connect, schema: database.schema, onLost: () => undefined, former, ...limits });
}

test("through a pooler no lock is taken and no setting changed, since it would stay behind", async () => {
  const database = await freshDatabase();
  const connect = async (): ReturnType<typeof connectDirectly> =>
    Object.assign(await connectDirectly(database.url), { processID: 4711 }); // what a pooler tells its clients
  const line = await openLine(database, connect);
  onTestFinished(() => line.close());
  expect(line.key).toBe(null);
  expect(await database.query(`select ${advisoryLocks}`)).toEqual([]);
  const show = { name: "show", values: () => [], text: "show statement_timeout" };
  expect(await line.run(show, {})).toEqual([{ statement_timeout: "0" }]);
});

test("a pooler that shows itself only later makes the line withdraw", async () => {
  const database = await freshDatabase();
  await database.query("select graphile_worker.worker_heartbeat('worker')");
  const line = await openLine(database);
  onTestFinished(() => line.close());
  await line.run(beat, { id: "worker", metadata: {}, key: line.key });
  expect(await database.query("select id, lost_at from graphile_worker._hathi_worker_lines")).toEqual([
    { id: "worker", lost_at: null },
  ]);
  await line.checkServer(4711, "worker");
  expect(await database.query("select from graphile_worker._hathi_worker_lines")).toEqual([]);
});

test("a new line waits for nothing, ends the session of the one before it, and bounds its statements on the server", async () => {
  const database = await freshDatabase();
  const zombie = await openLine(database);
  const line = await openLine(database, undefined, zombie.session);
  onTestFinished(() => line.close());
  await until(() => zombie.isLost, { what: "the former session is ended" });
  expect(line.key).not.toBe(zombie.key);
  const show = { name: "show", values: () => [], text: "show statement_timeout" };
  expect(await line.run(show, {})).toEqual([{ statement_timeout: "5s" }]);
  // A process id that was used again is another session.
  const other = await openLine(database, undefined, { pid: line.session!.pid, started: "2001-01-01 00:00:00+00" });
  onTestFinished(() => other.close());
  expect(line.isLost).toBe(false);
});

test("a task list that has grown is known to others at once", async () => {
  const database = await freshDatabase();
  const pool = testPool(database.url);
  const taskList: NonNullable<RunnerOptions["taskList"]> = { task: () => undefined };
  const { logger } = rememberingLogger();
  const { runTaskList } = await import("../../src/index.ts");
  const recovery = { ...quick, heartbeatInterval: 3_600_000, sweepThreshold: 3 * 3_600_000 };
  const workerPool = runTaskList({ recovery, logger, noHandleSignals: true }, taskList, pool);
  onTestFinished(() => workerPool.gracefulShutdown());
  await until(async () => (await registered(database)).length === 1);
  taskList.grown = () => undefined;
  (workerPool as unknown as { refreshTasks(): void }).refreshTasks();
  await until(
    async () =>
      (await database.query("select from graphile_worker._private_workers where metadata -> 'tasks' ? 'grown'"))
        .length === 1,
  );
});

test("workerShutdown hooks run while the worker is still registered", async () => {
  const database = await freshDatabase();
  const seen: string[][] = [];
  const { runner, stop } = await start(database, {
    hooks: {
      workerShutdown: async () => {
        seen.push(await registered(database));
      },
    },
  });
  await until(async () => (await registered(database)).length === 1);
  const before = await registered(database);
  await stop();
  await runner.promise;
  expect(seen).toEqual([before]);
  expect(await registered(database)).toEqual([]);
});
