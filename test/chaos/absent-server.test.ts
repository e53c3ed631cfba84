import type pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { sleep } from "../../src/util/sleep.ts";
import { testPool } from "../support/database.ts";
import { type PrivateServer, startPrivateServer } from "../support/private-server.ts";
import { allRuns } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 150_000 });

/** How long the server stays down. */
const absenceMs = Number(process.env.ABSENCE_MS ?? 30_000);

let server: PrivateServer;
beforeAll(async () => {
  server = await startPrivateServer();
});
afterAll(() => server?.remove());

/** A database of its own on that server. No poll comes to the rescue: jobs are found because LISTEN and the claimer come back. */
async function makeDatabase(name: string): Promise<{
  pool: pg.Pool;
  options: { connectionString: string; concurrency: number; pollInterval: number };
  add(task: string, more?: string): Promise<string>;
}> {
  await testPool(server.url, 1).query(`create database ${name}`);
  const url = new URL(server.url);
  url.pathname = name;
  const pool = testPool(url.href, 2);
  return {
    pool,
    options: { connectionString: url.href, concurrency: 4, pollInterval: 600_000 },
    add: async (task, more = "") =>
      (await pool.query(`select (graphile_worker.add_job('${task}' ${more})).id`)).rows[0].id,
  };
}

test("a worker outlives a server that stays down, and carries on by itself", async () => {
  const { pool, options, add } = await makeDatabase("absent");
  const leaver = await startWorker(options);
  const held = await add("hold");
  await until(() => leaver.holds().includes(held));
  const worker = await startWorker({ ...options, crontab: "* * * * * work ?seconds=*" });
  await until(() => allRuns([worker, leaver]).length > 0, { what: "recurring jobs run" });
  const scheduled = await add("work", ", run_at := now() + interval '3 seconds'");

  await server.stop("fast");
  // A job ends while there is nobody to tell, and its worker is to end too: it waits until somebody is there.
  leaver.release();
  leaver.kill("SIGTERM");
  await until(() => allRuns([leaver]).some(({ id }) => id === held));
  await sleep(absenceMs);
  expect([worker, leaver].map((one) => one.isAlive())).toEqual([true, true]);
  const before = allRuns([worker]).length;
  await server.start();
  expect(await leaver.ended).toBe(0);

  const hasRun = (id: string): boolean => allRuns([worker, leaver]).some((run) => run.id === id);
  await until(() => hasRun(scheduled), { what: "the job that fell due meanwhile has run" });
  // The pauses of the scheduler grow with the outage: after thirty seconds the next may take as long.
  await until(() => allRuns([worker]).length > before + 2, { what: "recurring jobs run again", withinMs: 60_000 });
  await until(() => worker.logged(/The database answers again/).length > 0);
  const late = await add("work");
  await until(() => hasRun(late), { what: "a job that is added now has run" });
  expect(await worker.stop()).toBe(0);
  expect(worker.logged(/Lost the database/)).toHaveLength(1);
  expect(worker.logged(/The database answers again/)).toHaveLength(1);
  expect(worker.logged(/Scheduling recurring jobs failed/)).toEqual([]);
  const ids = [held, scheduled, late];
  const { rows } = await pool.query(
    `select id from graphile_worker._private_jobs where locked_at is not null or id = any ($1::bigint[])`,
    [ids],
  );
  expect(rows).toEqual([]);
});

test("a worker that owes the database nothing ends without it", async () => {
  const { options } = await makeDatabase("nothing_owed");
  // Nobody wakes it and there is nothing to do, so its first look is its last, and none is under way when the server stops.
  const worker = await startWorker({ ...options, useNotifications: false, tells: ["worker:getJob:empty"] });
  await until(() => worker.told().length > 0);
  await server.stop("fast");
  worker.kill("SIGTERM");
  expect(await worker.ended).toBe(0);
  await server.start();
});
