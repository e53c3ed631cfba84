import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";

vi.setConfig({ testTimeout: 90_000 });

const recovery = {
  heartbeatInterval: 300,
  sweepInterval: 500,
  sweepThreshold: 3_000,
  recoveryDelay: 0,
  crashGrace: 1_000,
};

async function addJobs(db: TestDatabase, count: number, keys: number, ms: number): Promise<void> {
  await db.query(
    `select graphile_worker.add_job('work', json_build_object('t', 'k' || n % $2, 'ms', $3::int), queue_name => case when n % 10 = 0 then 'q' || n % 3 end)
    from generate_series(1, $1) as n`,
    [count, keys, ms],
  );
}

interface Watch {
  readonly samples: () => number;
  readonly above: string[];
  most: number;
}

/** Reads the locked rows again and again, and notes where there are more than the limits allow. */
function watchLocks(db: TestDatabase, limits: () => { whole: number; perKey: number }): Watch {
  const client = new pg.Client(db.url);
  let isOver = false;
  let samples = 0;
  const watch: Watch = { samples: () => samples, above: [], most: 0 };
  const loop = (async () => {
    await client.connect();
    while (!isOver) {
      const { whole, perKey } = limits();
      const { rows } = await client.query<{ t: string; n: number }>(
        `select payload ->> 't' as t, count(*)::int as n from graphile_worker._private_jobs where locked_at is not null group by 1`,
      );
      samples++;
      const total = rows.reduce((sum, { n }) => sum + n, 0);
      watch.most = Math.max(watch.most, total);
      if (total > whole) watch.above.push(`${total} of ${whole}`);
      for (const { t, n } of rows) if (n > perKey) watch.above.push(`${t}: ${n} of ${perKey}`);
    }
    await client.end();
  })();
  onTestFinished(async () => {
    isOver = true;
    await loop;
  });
  return watch;
}

test("under kills, freezes, sweeps and terminated backends the locked rows never exceed a limit, and all jobs run", async () => {
  const db = await freshDatabase();
  const seed = Number(process.env["SEED"] ?? 11);
  const roll = dice(seed);
  const options = {
    connectionString: db.url,
    concurrency: 4,
    pollInterval: 1_000,
    recovery,
    taskOptions: { work: { concurrency: [{ limit: 5 }, { limit: 2, key: "t" }] } },
  };
  const workers: WorkerProcess[] = [];
  const start = async (): Promise<void> => void workers.push(await startWorker(options));
  await Promise.all([start(), start(), start()]);
  await until(async () => (await db.query("select from graphile_worker._hathi_limited_tasks")).length === 1);
  const watch = watchLocks(db, () => ({ whole: 5, perKey: 2 }));
  await addJobs(db, 120, 4, 20);
  const left = async (): Promise<number> =>
    (await db.query<{ n: number }>("select count(*)::int as n from graphile_worker._private_jobs"))[0]!.n;
  for (let blow = 0; blow < 5; blow++) {
    const before = await left();
    await until(async () => (await left()) <= Math.max(0, before - 8), { withinMs: 30_000 });
    const victim = workers[Math.floor(roll() * workers.length)]!;
    const kind = Math.floor(roll() * 3);
    if (kind === 0) {
      victim.kill("SIGKILL");
      workers.splice(workers.indexOf(victim), 1);
      await start();
    } else if (kind === 1) {
      victim.kill("SIGSTOP");
      setTimeout(() => victim.kill("SIGCONT"), 3_500);
    } else {
      await db.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike '%claim%' and pid <> pg_backend_pid()",
      );
    }
  }
  await until(async () => (await left()) === 0, { withinMs: 60_000 });
  expect(watch.above, `seed ${seed}`).toEqual([]);
  expect(watch.most, "the limit is used").toBe(5);
  expect(watch.samples()).toBeGreaterThan(100);
});

test("limits set and cleared while two processes run act within a second, and a freed place is handed to the other process", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const options = { connectionString: db.url, concurrency: 3, pollInterval: 60_000 };
  const [one, other] = await Promise.all([startWorker(options), startWorker(options)]);
  const running = async (): Promise<number> =>
    (
      await db.query<{ n: number }>(
        "select count(*)::int as n from graphile_worker._private_jobs where locked_at is not null",
      )
    )[0]!.n;
  await utils.setLimit("hold", { limit: 2 });
  await db.query("select graphile_worker.add_job('hold') from generate_series(1, 8)");
  await until(async () => (await running()) === 2);
  const { reasons } = await utils.explainJob((await db.jobs()).find(({ locked_at }) => locked_at === null)!.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", limit: "hold", by: "concurrency", places: 2, taken: 2 });
  expect(reasons[0]!.message).toMatch(/2 of 2 places are taken, by job \d+ \(hold\) in pool-/);
  await utils.setLimit("hold", { limit: 4 });
  await until(async () => (await running()) === 4, { withinMs: 5_000 });
  // The other process takes what this one frees and does not want: it stops.
  const holder = one!.holds().length > 0 ? one! : other!;
  const heir = holder === one ? other! : one!;
  holder.release();
  await holder.stop();
  await until(() => heir.holds().length === 3, { withinMs: 5_000 });
  expect(await running()).toBeLessThanOrEqual(4);
  await utils.clearLimit("hold");
  expect(await utils.listLimits()).toEqual([]);
  heir.release();
  await until(async () => (await db.jobs()).length === 0);
});

test("jobs that an original worker runs are counted, and doctor says that it does not obey", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await utils.setLimit("hold", { limit: 2 });
  const original = await startOriginal({ connectionString: db.url, concurrency: 3, pollInterval: 60_000 });
  await db.query("select graphile_worker.add_job('hold') from generate_series(1, 3)");
  await until(() => original.holds().length === 3);
  const ours = await startWorker({ connectionString: db.url, concurrency: 3, pollInterval: 200 });
  await db.query("select graphile_worker.add_job('hold') from generate_series(1, 2)");
  await db.query("select graphile_worker.add_job('work')");
  await until(() => ours.finished().length === 1);
  expect(ours.holds()).toEqual([]);
  const check = (await utils.examineHealth()).find(({ name }) => name === "limits")!;
  expect(check).toMatchObject({ status: "warning", message: expect.stringMatching(/they obey no limit/) });
  original.release();
  await original.stop();
  await until(() => ours.holds().length === 2);
  ours.release();
});
