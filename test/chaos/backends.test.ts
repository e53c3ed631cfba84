import type pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { testPool } from "../support/database.ts";
import { type PrivateServer, startPrivateServer } from "../support/private-server.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 240_000 });

let server: PrivateServer;
beforeAll(async () => {
  server = await startPrivateServer();
});
afterAll(() => server?.remove());

/** A database of its own on that server. */
async function makeDatabase(name: string): Promise<{ url: string; pool: pg.Pool }> {
  await testPool(server.url, 1).query(`create database ${name}`);
  const url = new URL(server.url);
  url.pathname = name;
  return { url: url.href, pool: testPool(url.href, 2) };
}

/** Starts two workers and fills their database with jobs; every tenth is in one of fifty named queues. */
async function startLoad(
  name: string,
  jobs: number,
): Promise<{ pool: pg.Pool; workers: WorkerProcess[]; ids: string[] }> {
  const { url, pool } = await makeDatabase(name);
  const options = { connectionString: url, concurrency: 30, crontab: "* * * * * work ?seconds=*" };
  const workers = await Promise.all([startWorker(options), startWorker(options)]);
  const { rows } = await pool.query<{ id: string }>(
    `select id from graphile_worker.add_jobs(array(
       select json_populate_record(null::graphile_worker.job_spec, json_build_object(
         'identifier', 'work', 'payload', '{"ms":2}'::json,
         'queue_name', case when n % 10 = 0 then 'queue ' || n / 10 % 50 end))
       from generate_series(1, $1) as n))`,
    [jobs],
  );
  return { pool, workers, ids: rows.map(({ id }) => id) };
}

/** Asks until the server answers. */
function ask(pool: pg.Pool, text: string): Promise<pg.QueryResult> {
  return until(() => pool.query(text).catch(() => null), { what: `the server answers ${text}` });
}

function terminateAll(pool: pg.Pool): Promise<pg.QueryResult> {
  return ask(
    pool,
    `select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  );
}

function untilRun(workers: readonly WorkerProcess[], ids: readonly string[], share = 1): Promise<unknown> {
  const wanted = new Set(ids);
  const done = (): Set<string> => new Set(allRuns(workers).map(({ id }) => id));
  return until(() => [...done()].filter((id) => wanted.has(id)).length >= ids.length * share, {
    what: `${share * 100} % of ${ids.length} jobs have run`,
    withinMs: 60_000,
  });
}

/** Every outage is said once, and so is its end. */
function countOutages(worker: WorkerProcess): number {
  const lost = worker.logged(/Lost the database/).length;
  expect(worker.logged(/The database answers again/)).toHaveLength(lost);
  return lost;
}

async function stopAll(workers: readonly WorkerProcess[]): Promise<void> {
  expect(await Promise.all(workers.map((worker) => worker.stop()))).toEqual(workers.map(() => 0));
}

const leftovers = `
  select (select count(*)::int from graphile_worker._private_jobs where locked_at is not null) as locked_jobs,
    (select count(*)::int from graphile_worker._private_job_queues where locked_at is not null) as locked_queues,
    (select count(*)::int from graphile_worker._private_jobs where payload::text like '%"ms"%') as jobs`;
const none = { locked_jobs: 0, locked_queues: 0, jobs: 0 };

test("20,000 jobs run exactly once while backends are terminated and the server restarts", async () => {
  const { pool, workers, ids } = await startLoad("terminated", 20_000);
  const shares = [0.05, 0.2, 0.4, 0.6, 0.8];
  for (const share of shares) {
    await untilRun(workers, ids, share);
    if (share === 0.4) await server.restart("fast");
    else await terminateAll(pool);
  }
  await untilRun(workers, ids);
  await stopAll(workers);

  const runs = allRuns(workers);
  const counts = countRuns(runs);
  expect(ids.filter((id) => counts.get(id) !== 1)).toEqual([]);
  expect(findOverlaps(runs)).toEqual([]);
  expect((await ask(pool, leftovers)).rows).toEqual([none]);
  for (const worker of workers) expect(countOutages(worker)).toBeLessThanOrEqual(shares.length);
});

test("a crash of the server loses no job, leaves none locked, and keeps queues serial", async () => {
  const { pool, workers, ids } = await startLoad("crashed", 5_000);
  for (const share of [0.2, 0.6]) {
    await untilRun(workers, ids, share);
    await server.restart("immediate");
  }
  await untilRun(workers, ids);
  await until(async () => (await ask(pool, leftovers)).rows[0].jobs === 0);
  await stopAll(workers);

  // A claim that the crash made the server forget means another run: at least once is the promise here.
  expect(findOverlaps(allRuns(workers))).toEqual([]);
  expect((await ask(pool, leftovers)).rows).toEqual([none]);
});
