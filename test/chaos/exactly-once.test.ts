import { setMaxListeners } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { sleep } from "../../src/util/sleep.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { configuration, hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProcess } from "../support/process.ts";
import { commitAnswer, startProxy } from "../support/proxy.ts";
import { times } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { recovery } from "./kit.ts";

/*
 * 10,000 jobs with the transactions of one library, a few minutes each:
 *
 *   TEST_FACTOR=4 HATHI_ONCE_LIBRARY="Kysely" npx vitest run test/chaos/exactly-once.test.ts -t directly
 *
 * The names are those of `test/orms/libraries`. Without one, half of the jobs use pg and half are `transactional`.
 */
const jobs = times(2_500);
const withinMs = Math.max(200_000, times(300_000));
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
  { timeout: withinMs + 40_000 },
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
    const target = way === "directly" ? db.url : await startPgBouncer(db.url, manyConnections);
    /** Of the workers, which lend `helpers.tx`; and of the tasks themselves. */
    const proxies = { lent: await startProxy(target), own: await startProxy(target) };
    await db.query("create table counters (id integer primary key, n integer not null)");
    await db.query("insert into counters select id, 0 from generate_series(0, 4999) as id");
    const ids: string[] = [];
    const add = async (amount: number): Promise<void> => {
      const rows = await db.query<{ id: string }>(
        `select id from graphile_worker.add_jobs(array(
       select ((case when nth % 2 = 0 or $2 then 'own' else 'lent' end), '{}', null, null, 1000, null, 0, null)::graphile_worker.job_spec
       from generate_series(1, $1::integer) as nth))`,
        [amount, orm !== undefined],
      );
      ids.push(...rows.map(({ id }) => id));
    };
    await add(count);
    const backoff = { type: "fixed", delay: 20 };
    const start = async () => {
      const options = {
        connectionString: `${proxies.lent.url}?application_name=once`,
        url: `${proxies.own.url}?application_name=once`,
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
        orm === "Prisma" ? { HATHI_PRISMA_IS_GENERATED: "1" } : {},
      );
      await child.says(/^ready$/m);
      return child;
    };
    const workers = await Promise.all([start(), start(), start()]);
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    /** `inTransaction`: terminated between two statements, or in one. `swallowed`: commits whose answers were. `swept`: declared dead while frozen. */
    const blows = { terminated: 0, inTransaction: 0, swallowed: { own: 0, lent: 0 }, frozen: 0, swept: 0 };
    const startedAt = Date.now();

    const terminate = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const [hit] = await db.query<{ hit: boolean; in_transaction: boolean }>(
          `select pg_terminate_backend(pid) as hit, xact_start is not null as in_transaction from pg_stat_activity
         where datname = current_database() and (client_port = any ($2) or application_name = 'once')
         order by md5(pid::text || $1) limit 1`,
          [String(roll()), Object.values(proxies).flatMap((proxy) => proxy.ports())],
        );
        if (hit?.hit) blows.terminated++;
        if (hit?.hit && hit.in_transaction) blows.inTransaction++;
        await sleep(100 + roll() * 200, over.signal);
      }
    };
    const swallow = async (whose: "own" | "lent"): Promise<void> => {
      while (!over.signal.aborted) {
        const cut = proxies[whose].cutInsteadOf(commitAnswer).then(() => blows.swallowed[whose]++);
        await Promise.race([cut, sleep(1_000, over.signal)]);
        await sleep(100 + roll() * 200, over.signal);
      }
    };
    const isAlive = async (pid: number, ids: readonly string[]): Promise<boolean> =>
      (await workerIds(db, pid)).some((id) => ids.includes(id));
    const freeze = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const worker = workers[Math.floor(roll() * workers.length)]!;
        const ids = await workerIds(db, worker.pid);
        if (ids.length === 0) continue; // it is about to register again
        worker.kill("SIGSTOP");
        blows.frozen++;
        const isSwept = async (): Promise<boolean> => over.signal.aborted || !(await isAlive(worker.pid, ids));
        await until(isSwept, { withinMs: 60_000, what: "a frozen process is declared dead" }).finally(() =>
          worker.kill("SIGCONT"),
        );
        if (!over.signal.aborted) blows.swept++;
        await sleep(500 + roll() * 500, over.signal);
      }
    };
    const trouble = Promise.all([terminate(), swallow("own"), swallow("lent"), freeze()]);
    const left = async (): Promise<number> =>
      (
        await db.query<{ n: number }>(
          `select count(*)::integer as n from graphile_worker._private_jobs as job
       join graphile_worker._private_tasks as task on task.id = job.task_id where task.identifier <> 'follow-up'`,
        )
      )[0]!.n;
    const isHit = (): boolean =>
      Math.min(blows.inTransaction, blows.swallowed.own, orm ? 1 : blows.swallowed.lent, blows.swept) > 0;
    const isDone = async (): Promise<boolean> => {
      if ((await left()) > 0) return false;
      // More than asked for, if the blows have missed so far.
      if (isHit()) return true;
      await add(100);
      return false;
    };
    await until(isDone, { withinMs, what: `all jobs are done (seed ${seed})` });
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    over.abort();
    await trouble;
    for (const worker of workers) worker.send("stop");
    await Promise.all(workers.map((worker) => worker.ended));

    const ends = workers.map((worker) => {
      const line = worker.output().match(/^\{"completed".*$/m);
      return JSON.parse(line![0]) as { completed: string[]; lost: number };
    });
    const completed = ends.flatMap((end) => end.completed);
    const lost = ends.reduce((sum, each) => sum + each.lost, 0);
    console.log(`${orm ?? "pg"}, ${way}, seed ${seed}: ${ids.length} jobs in ${seconds} s`, { ...blows, lost });
    const [sums] = await db.query<{ added: number; followed: number; kept: number; locked: number }>(`
    select (select sum(n) from counters)::integer as added,
      (select count(*) from graphile_worker._private_jobs)::integer as followed,
      (select count(*) from graphile_worker._private_jobs where locked_at is not null)::integer as locked,
      (select coalesce(sum(cardinality(job_ids)), 0) from graphile_worker._hathi_history_batches)::integer as kept`);
    const followed = ids.filter((id) => Number(id) % 10 === 0).length;
    expect(sums).toEqual({ added: ids.length, followed, kept: ids.length, locked: 0 });
    expect(new Set(completed).size).toBe(completed.length);
    expect(completed.toSorted()).toEqual(ids.toSorted());
  },
);

/** The ids under which a process is known as alive. */
async function workerIds(db: TestDatabase, pid: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    "select id from graphile_worker._private_workers where (metadata ->> 'pid')::integer = $1",
    [pid],
  );
  return rows.map(({ id }) => id);
}
