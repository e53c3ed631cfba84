import { setMaxListeners } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { sleep } from "../../src/util/sleep.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { configuration, hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProcess } from "../support/process.ts";
import { startProxy } from "../support/proxy.ts";
import { times } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { recovery } from "./kit.ts";

const jobs = times(2_500);

/** `HATHI_ONCE_LIBRARY="Kysely"` for the transactions of one of `test/orms/libraries` instead of those of pg. */
const orm = process.env.HATHI_ONCE_LIBRARY;

/** A process that is frozen keeps its transactions, and their connections: others need some as well. */
const manyConnections: typeof configuration = (target, port) =>
  configuration(target, port).replace("default_pool_size = 4", "default_pool_size = 40");

const ways = [
  { way: "directly", count: jobs },
  { way: "through PgBouncer", count: Math.min(jobs, 300) },
];

test.for(ways)(
  "$count jobs that each add one to a row add exactly $count, whatever happens to their connections and processes ($way)",
  { timeout: 240_000 },
  async ({ way, count }, { skip }) => {
    skip(way !== "directly" && !hasPgBouncer, noPgBouncer);
    const seed = Number(process.env.HATHI_SEED ?? Date.now() % 1_000_000);
    const roll = dice(seed);
    const db = await freshDatabase();
    // Its client is made here, once.
    if (orm === "Prisma") {
      const { prisma } = await import("../orms/libraries/prisma.ts");
      await (await prisma.open(db.url)).close();
    }
    const proxy = await startProxy(way === "directly" ? db.url : await startPgBouncer(db.url, manyConnections));
    await db.query("create table counters (id integer primary key, n integer not null)");
    await db.query("insert into counters select id, 0 from generate_series(0, 4999) as id");
    await db.query(
      `select count(*) from graphile_worker.add_jobs(array(
       select ((case when nth % 2 = 0 or $2 then 'own' else 'lent' end), '{}', null, null, 1000, null, 0, null)::graphile_worker.job_spec
       from generate_series(1, $1::integer) as nth))`,
      [count, orm !== undefined],
    );
    const url = `${proxy.url}?application_name=once`;
    const backoff = { type: "fixed", delay: 20 };
    const start = async () => {
      const options = {
        connectionString: url,
        url,
        orm,
        ...(way !== "directly" && { listenConnectionString: db.url, noPreparedStatements: true }),
        library: builtLibrary(),
        concurrency: 10,
        maxPoolSize: 12,
        pollInterval: 200,
        history: "outcomes",
        recovery,
        taskOptions: {
          own: { backoff, ...(orm && { timeout: "5s", transactionTimeout: "8s" }) },
          lent: { backoff, transactional: true },
        },
      };
      const child = startProcess(
        fileURLToPath(new URL("once-worker.mjs", import.meta.url)),
        [JSON.stringify(options)],
        {
          HATHI_PRISMA_IS_GENERATED: "1",
        },
      );
      await child.says(/^ready$/m);
      return child;
    };
    const workers = await Promise.all([start(), start(), start()]);
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    const blows = { terminated: 0, swallowed: 0, frozen: 0 };

    const terminate = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const [hit] = await db.query<{ hit: boolean }>(
          `select pg_terminate_backend(pid) as hit from pg_stat_activity
         where datname = current_database() and application_name = 'once'
         order by md5(pid::text || $1) limit 1`,
          [String(roll())],
        );
        if (hit?.hit) blows.terminated++;
        await sleep(100 + roll() * 200, over.signal);
      }
    };
    const swallow = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await Promise.race([proxy.cutAfter("commit\0").then(() => blows.swallowed++), sleep(1_000, over.signal)]);
        await sleep(100 + roll() * 200, over.signal);
      }
    };
    const freeze = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const worker = workers[Math.floor(roll() * workers.length)]!;
        worker.kill("SIGSTOP");
        blows.frozen++;
        await sleep(recovery.sweepThreshold + 1_500, over.signal);
        worker.kill("SIGCONT");
        await sleep(500 + roll() * 500, over.signal);
      }
    };
    const trouble = Promise.all([terminate(), swallow(), freeze()]);
    const left = async (): Promise<number> =>
      (
        await db.query<{ n: number }>(
          `select count(*)::integer as n from graphile_worker._private_jobs as job
       join graphile_worker._private_tasks as task on task.id = job.task_id where task.identifier <> 'follow-up'`,
        )
      )[0]!.n;
    await until(async () => (await left()) === 0, { withinMs: 200_000, what: `all jobs are done (seed ${seed})` });
    over.abort();
    await trouble;
    for (const worker of workers) worker.send("stop");
    await Promise.all(workers.map((worker) => worker.ended));

    const ends = workers.map((worker) => {
      const line = worker.output().match(/^\{"completed".*$/m);
      return JSON.parse(line![0]) as { completed: string[]; lost: number };
    });
    const completed = ends.flatMap((end) => end.completed);
    console.log(`seed ${seed}:`, { ...blows, lost: ends.reduce((sum, { lost }) => sum + lost, 0) });
    const [sums] = await db.query<{ added: number; followed: number; kept: number; locked: number }>(`
    select (select sum(n) from counters)::integer as added,
      (select count(*) from graphile_worker._private_jobs)::integer as followed,
      (select count(*) from graphile_worker._private_jobs where locked_at is not null)::integer as locked,
      (select coalesce(sum(cardinality(job_ids)), 0) from graphile_worker._hathi_history_batches)::integer as kept`);
    expect(sums).toEqual({ added: count, followed: count / 10, kept: count, locked: 0 });
    expect(new Set(completed).size).toBe(completed.length);
    expect(completed).toHaveLength(count);
    expect(blows.terminated).toBeGreaterThan(0);
    expect(blows.swallowed).toBeGreaterThan(0);
    expect(blows.frozen).toBeGreaterThan(0);
  },
);
