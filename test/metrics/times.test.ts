import { expect, onTestFinished, test, vi } from "vitest";
import type { TaskTimes } from "../../src/admin/job-times.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { type CountedTimes, recordTimes } from "../../src/db/statements/metrics.ts";
import { Histogram } from "../../src/metrics/histogram.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/runner/worker-utils.ts";
import { binCount, binOf } from "../../src/util/log-bins.ts";
import { runCommand } from "../support/command.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

async function utilsOf(db: TestDatabase): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString: db.url });
  onTestFinished(() => utils.release());
  return utils;
}

function binsOf(...times: number[]): number[] {
  const bins = new Array<number>(binCount).fill(0);
  for (const ms of times) bins[binOf(ms)]!++;
  return bins;
}

function record(db: TestDatabase, ...counted: Partial<CountedTimes>[]): Promise<unknown> {
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const none = { task: "work", waits: binsOf(), runs: binsOf(), succeeded: 0, failed: 0, permanently_failed: 0 };
  return database.run(recordTimes, { counted: counted.map((counts) => ({ ...none, ...counts })) });
}

test("a worker records how long jobs waited and ran and how they ended, and the last of it when it stops", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job('work') from generate_series(1, 3);
    select graphile_worker.add_job('fail', max_attempts => 1), graphile_worker.add_job('fail');
    update graphile_worker._private_jobs set run_at = now() - interval '1 hour', created_at = now() - interval '1 hour'`);
  const tasks = {
    work: () => undefined,
    fail: () => {
      throw new Error("boom");
    },
  };
  const worker = await startWorker(db, tasks, { metrics: makeMetrics() });
  await worker.completed(5);
  await worker.runner.stop();

  const utils = await utilsOf(db);
  const found = await utils.getJobTimes();
  expect(found).toMatchObject([
    { task: "fail", attempts: 2, failed: 2, permanentlyFailed: 1, failureRate: 1 },
    { task: "work", attempts: 3, failed: 0, permanentlyFailed: 0, failureRate: 0 },
  ]);
  for (const { wait } of found) {
    expect(wait.p99).toBeGreaterThan(3_600_000 / 1.2);
    expect(wait.p99).toBeLessThan(3_700_000 * 1.2);
  }
  expect(found[1]!.run.p50).toBeLessThan(60_000);
});

test("what pools record in one minute is added up, also when they do so at the same time", async () => {
  const db = await freshDatabase();
  const tasks = ["a", "b", "c"];
  const each = (task: string): Partial<CountedTimes> => ({
    task,
    waits: binsOf(5),
    runs: binsOf(100, 200),
    succeeded: 2,
  });
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      record(db, ...(index % 2 === 0 ? tasks : tasks.toReversed()).map((task) => each(task))),
    ),
  );
  const found = await (await utilsOf(db)).getJobTimes();
  expect(found.map(({ task, attempts }) => [task, attempts])).toEqual(tasks.map((task) => [task, 40]));
  const rows = await db.query<{ waits: string }>(
    "select pg_catalog.sum(bin) as waits from graphile_worker._hathi_job_times, unnest(waits) as bin",
  );
  expect(rows).toEqual([{ waits: "60" }]);
});

test("minutes become hours and hours become days, old days go, and nothing is lost on the way", async () => {
  const db = await freshDatabase();
  const addOld = (ago: string, period = "minute"): Promise<unknown> =>
    db.query(
      `insert into graphile_worker._hathi_job_times
       select $2, date_trunc('minute', now() - $1::interval) - n * interval '1 minute', 'work', array[1, 2], array[3], 1, 1, 0
       from generate_series(1, 60) as n`,
      [ago, period],
    );
  await addOld("1 hour");
  await addOld("10 hours");
  await addOld("5 days");
  await addOld("100 days", "day");
  for (let turn = 0; turn < 3; turn++) await record(db, { runs: binsOf(1), succeeded: 1 });

  const rows = await db.query<{ period: string; rows: number; attempts: number; waits: number }>(`
    select period, count(*)::int as rows, sum(succeeded + failed)::int as attempts, sum(waits[2])::int as waits
    from graphile_worker._hathi_job_times group by period order by period`);
  const byPeriod = Object.fromEntries(rows.map(({ period, ...rest }) => [period, rest]));
  expect(byPeriod.minute).toMatchObject({ attempts: 123, waits: 120 });
  expect(byPeriod.hour).toMatchObject({ attempts: 120, waits: 120 });
  expect(byPeriod.hour!.rows).toBeLessThanOrEqual(2);
  expect(byPeriod.day).toMatchObject({ attempts: 120, waits: 120 });
  expect(byPeriod.day!.rows).toBeLessThanOrEqual(2);

  const utils = await utilsOf(db);
  const attempts = async (hours: number): Promise<number | undefined> =>
    (await utils.getJobTimes({ sinceMs: hours * 3_600_000 }))[0]?.attempts;
  expect(await attempts(0.5)).toBe(3);
  expect(await attempts(3)).toBe(123);
  expect(await attempts(24)).toBe(243);
  expect(await attempts(24 * 30)).toBe(363);
});

test("hathi stats --since shows percentiles and failure rates", async () => {
  const db = await freshDatabase();
  await record(db, { waits: binsOf(5), runs: binsOf(100), succeeded: 3, failed: 1 });
  const { stdout, code } = await runCommand(["stats", "--since", "1h", "-c", db.url], { cwd: process.cwd() });
  expect(code).toBe(0);
  expect(stdout).toMatch(/TASK +ATTEMPTS +FAILED +WAIT P50 +WAIT P95 +WAIT P99 +RUN P50 +RUN P95 +RUN P99/);
  expect(stdout).toMatch(/work +4 +25\.0 % +\d\.\d ms +\d\.\d ms +\d\.\d ms +\d+ ms +\d+ ms +\d+ ms/);
  const json = await runCommand(["stats", "--since", "1h", "--json", "-c", db.url], { cwd: process.cwd() });
  expect(JSON.parse(json.stdout)).toMatchObject({ times: [{ task: "work", attempts: 4, failureRate: 0.25 }] });
});

/** Times as they are met: of one length, spread over some orders of magnitude, or most of one length and few of another. */
const spreads: Record<string, (roll: () => number) => number> = {
  constant: () => 40,
  even: (roll) => 1 + 500 * roll(),
  wide: (roll) => 2 ** (23 * roll()),
  longTail: (roll) => 20 * Math.exp(1.5 * (roll() + roll() + roll() + roll() - 2)),
  twoPeaks: (roll) => (roll() < 0.93 ? 3 + 4 * roll() : 8_000 + 4_000 * roll()),
};

/** The time that this share of them did not exceed. */
function exactly(times: readonly number[], share: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(share * times.length) - 1]!;
}

test("hathi stats gives each percentile within half a bin of the exact one, whatever the times", async () => {
  const db = await freshDatabase();
  const roll = dice(7);
  const samples = Object.keys(spreads).flatMap((spread) =>
    [1, 2, 19, 100, 3_000].map((count) => {
      const draw = (): number[] => Array.from({ length: count }, () => spreads[spread]!(roll));
      return { task: `${spread} ${count}`, waits: draw(), runs: draw() };
    }),
  );
  const binned = (times: readonly number[], part: number): number[] => {
    const histogram = new Histogram();
    for (const [n, ms] of times.entries()) if (n % 2 === part) histogram.observe(ms);
    return [...histogram.bins];
  };
  // As two processes would.
  for (const part of [0, 1]) {
    await record(
      db,
      ...samples.map(({ task, waits, runs }) => ({
        task,
        waits: binned(waits, part),
        runs: binned(runs, part),
        succeeded: 1,
      })),
    );
  }
  const { stdout } = await runCommand(["stats", "--since", "1h", "--json", "-c", db.url], { cwd: process.cwd() });
  const { times } = JSON.parse(stdout) as { times: TaskTimes[] };
  expect(times).toHaveLength(samples.length);
  const wrong = samples.flatMap(({ task, waits, runs }) => {
    const found = times.find((one) => one.task === task)!;
    return ([50, 95, 99] as const).flatMap((percent) =>
      [
        { kind: "wait", told: found.wait[`p${percent}`]!, exact: exactly(waits, percent / 100) },
        { kind: "run", told: found.run[`p${percent}`]!, exact: exactly(runs, percent / 100) },
      ]
        .filter(({ told, exact }) => !(Math.abs(Math.log2(told / exact)) <= 0.25 + 1e-6))
        .map((miss) => ({ task, percent, ...miss })),
    );
  });
  expect(wrong).toEqual([]);
});
