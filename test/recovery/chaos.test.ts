import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import type { WorkerProcess } from "../support/worker-process.ts";
import { addJob, quickly, registered, startRecovering } from "./kit.ts";

async function linesHeld(database: TestDatabase, count: number): Promise<void> {
  const live = "select from graphile_worker._hathi_worker_lines where lost_at is null";
  await until(async () => (await database.query(live)).length === count, { what: `${count} workers hold their lines` });
}

test("a half-open heartbeat connection is replaced, its session is ended, and the worker stays who it is", async () => {
  const database = await freshDatabase();
  const proxy = await startProxy(database.url);
  // Others would notice its silence only much later; only the heartbeats go through the proxy.
  const recovery = { ...quickly, heartbeatInterval: 1_000, sweepThreshold: 20_000 };
  const worker = await startRecovering(database, { listenConnectionString: proxy.url, recovery });
  const other = await startRecovering(database, { recovery });
  await linesHeld(database, 2);
  const before = await registered(database);
  const heartbeats = `
    select pid from pg_locks
    where locktype = 'advisory' and mode = 'ExclusiveLock' and granted
      and database = (select oid from pg_database where datname = current_database())`;
  const pids = (await database.query<{ pid: number }>(heartbeats)).map(({ pid }) => pid);
  proxy.blackholeOpen();
  // The server holds the old session until its successor ends it: nothing waits for its lock, and no backend is left over.
  await until(async () => {
    const now = (await database.query<{ pid: number }>(heartbeats)).map(({ pid }) => pid);
    return now.length === 2 && now.some((pid) => !pids.includes(pid));
  });
  expect(await database.query("select from pg_locks where locktype = 'advisory' and not granted")).toEqual([]);
  const ids = await Promise.all(Array.from({ length: 20 }, () => addJob(database, "work", { ms: 20 })));
  await until(async () => (await database.jobs()).length === 0);
  expect([...worker.finished(), ...other.finished()].toSorted()).toEqual(ids.toSorted());
  expect(await registered(database)).toEqual(before);
}, 120_000);

test("a worker whose heartbeat path is cut while its work path is not stops claiming before its jobs are taken", async () => {
  const database = await freshDatabase();
  const proxy = await startProxy(database.url);
  const recovery = { ...quickly, sweepThreshold: 6_000, sweepInterval: 3_600_000, crashGrace: 3_600_000 };
  const worker = await startRecovering(database, { listenConnectionString: proxy.url, recovery });
  await linesHeld(database, 1);
  proxy.sever();
  await worker.says(/starts no jobs: its heartbeat is overdue/);
  const [row] = await database.query<{ seconds: number }>(
    "select extract(epoch from clock_timestamp() - last_heartbeat_at)::float8 as seconds from graphile_worker._private_workers",
  );
  expect(row!.seconds).toBeLessThan(6);
  const id = await addJob(database, "work");
  await until(
    async () => {
      const [row] = await database.query<{ late: boolean }>(
        "select clock_timestamp() > last_heartbeat_at + interval '7 seconds' as late from graphile_worker._private_workers",
      );
      return row!.late;
    },
    { what: "others could take its jobs" },
  );
  expect(await database.job(id)).toMatchObject({ locked_by: null });
  proxy.restore();
  await until(() => worker.finished().includes(id), { what: "it goes on with the next heartbeat" });
}, 120_000);

test("a job that ends its process is failed for good, and none of the nine that ran beside it", async () => {
  const database = await freshDatabase();
  const poison = await addJob(database, "exit", { ms: 100, beside: 10 });
  const innocent = await Promise.all(Array.from({ length: 9 }, () => addJob(database, "work", { ms: 400 })));
  const recovery = { ...quickly, sweepThreshold: 20_000 };
  const start = (): Promise<WorkerProcess> => startRecovering(database, { concurrency: 10, recovery });
  const workers: WorkerProcess[] = [];
  for (let death = 0; death < 6; death++) {
    const worker = await start();
    workers.push(worker);
    const isOver = async (): Promise<boolean> => (await database.jobs()).every(({ attempts }) => attempts === 25);
    await Promise.race([worker.ended, until(isOver, { withinMs: 60_000 })]);
    if (await isOver()) break;
  }
  expect(await database.jobs()).toMatchObject([
    { id: poison, attempts: 25, last_error: expect.stringMatching(/^WorkerCrashed/) },
  ]);
  // One death beside the others, and three alone.
  expect(workers.flatMap((worker) => worker.started()).filter((id) => id === poison)).toHaveLength(4);
  expect(workers[0]!.started().length).toBe(10);
  for (const id of innocent) expect(workers.some((worker) => worker.finished().includes(id))).toBe(true);
}, 120_000);

test("a long job that is hit by one deployment after the other never fails for good", async () => {
  const database = await freshDatabase();
  const id = await addJob(database, "hold");
  for (let deployment = 1; deployment <= 4; deployment++) {
    const worker = await startRecovering(database);
    await until(() => worker.started().includes(id));
    worker.kill("SIGTERM");
    await until(
      async () =>
        (await database.query("select from graphile_worker._private_workers where metadata ? 'stopping'")).length === 1,
    );
    worker.kill("SIGKILL");
    await worker.ended;
  }
  const last = await startRecovering(database);
  await until(() => last.started().includes(id));
  expect(await database.job(id)).toMatchObject({ attempts: 1 });
  last.release();
  await until(async () => (await database.job(id)) === undefined);
}, 120_000);

test("one of four workers is killed every other second: no job is lost, none fails, and queues keep their order", async () => {
  const database = await freshDatabase();
  const recovery = { ...quickly, sweepThreshold: 20_000 };
  const start = (): Promise<WorkerProcess> => startRecovering(database, { concurrency: 4, recovery });
  const workers = await Promise.all([start(), start(), start(), start()]);
  const alive = [...workers];
  const queues: string[][] = [];
  for (let queue = 0; queue < 8; queue++) {
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push(await addJob(database, "work", { ms: 150 }, { queue: `q${queue}` }));
    queues.push(ids);
  }
  const plain = await Promise.all(Array.from({ length: 100 }, () => addJob(database, "work", { ms: 150 })));
  for (let kill = 0; kill < 6; kill++) {
    const [victim] = alive.splice(kill % alive.length, 1);
    victim!.kill("SIGKILL");
    const next = await start(); // about as long as two seconds on a busy machine
    workers.push(next);
    alive.push(next);
  }
  await until(async () => (await database.jobs()).length === 0, { withinMs: 60_000, what: "every job is done" });
  const finished = new Set(workers.flatMap((worker) => worker.finished()));
  for (const id of [...plain, ...queues.flat()]) expect(finished).toContain(id);
  const starts = workers.flatMap((worker) => worker.starts());
  for (const ids of queues) {
    const order = starts.filter(({ id }) => ids.includes(id)).toSorted((a, b) => a.at - b.at);
    // A job that was killed starts again, but nothing starts before all that stand in front of it have.
    const positions = order.map(({ id }) => ids.indexOf(id));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
  }
}, 150_000);
