import { expect, test, vi } from "vitest";
import { quickly } from "../recovery/kit.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

const taskOptions = { fail_first: { backoff: { type: "fixed", delay: 1 } } } as const;

async function startWorkers(db: TestDatabase, count: number): Promise<WorkerProcess[]> {
  const options = {
    connectionString: db.url,
    concurrency: 20,
    history: "outcomes",
    pollInterval: 200,
    taskOptions,
  } as const;
  return Promise.all(Array.from({ length: count }, () => startWorker(options)));
}

const addJobs = (db: TestDatabase, jobs: number): Promise<unknown> =>
  db.query(
    `select graphile_worker.add_job(
       case when n % 3 = 0 then 'fail_first' else 'work' end, '{"ms":2}'::json, queue_name => case when n % 10 = 0 then 'q' || n / 10 % 20 end)
     from generate_series(1, $1) as n`,
    [jobs],
  );

const jobsLeft = async (db: TestDatabase): Promise<number> => {
  const [row] = await db.query<{ left: number }>("select count(*)::int as left from graphile_worker._private_jobs");
  return row!.left;
};

/** Every outcome of every attempt, from both tables. */
const outcomes = `
  select job.id, coalesce(job.attempt, 1) as attempt, 'succeeded' as outcome
  from graphile_worker._hathi_history_batches as batch
  cross join unnest(batch.job_ids, batch.attempts) as job (id, attempt)
  union all
  select job_id, attempt, outcome from graphile_worker._hathi_history_attempts`;

/** Every job has succeeded exactly once, and no attempt has two outcomes. */
async function checkOutcomes(db: TestDatabase, jobs: number): Promise<void> {
  expect(
    await db.query(
      `select count(*)::int as successes, count(distinct id)::int as jobs from (${outcomes}) as o where outcome = 'succeeded'`,
    ),
  ).toEqual([{ successes: jobs, jobs }]);
  expect(
    await db.query(
      `select id, attempt, array_agg(outcome) as outcomes from (${outcomes}) as o group by id, attempt having count(*) > 1`,
    ),
  ).toEqual([]);
  // The groups count each failure once.
  const groups = (from: string): Promise<object[]> =>
    db.query(`select fingerprint, expires_on, ${from} group by fingerprint, expires_on order by 1, 2`);
  expect(await groups("sum(failures)::int as count from graphile_worker._hathi_error_groups")).toEqual(
    await groups("count(*)::int from graphile_worker._hathi_history_attempts where fingerprint is not null"),
  );
}

test("each attempt has exactly one outcome although backends are terminated all the time", async () => {
  const db = await freshDatabase();
  const workers = await startWorkers(db, 2);
  await addJobs(db, 1_500);
  let terminated = 0;
  await until(
    async () => {
      const [row] = await db.query<{ count: number }>(`
        select count(pg_terminate_backend(pid))::int as count from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query like '%_kept(%' or random() < 0.1
          and datname = current_database() and pid <> pg_backend_pid()`);
      terminated += row!.count;
      return (await jobsLeft(db)) === 0;
    },
    { what: "all jobs are done", withinMs: 90_000 },
  );
  expect(terminated).toBeGreaterThan(0);
  await Promise.all(workers.map((worker) => worker.stop()));
  await checkOutcomes(db, 1_500);
  // No worker died, so no attempt is without its outcome either: each job has all of 1 up to that of its success.
  expect(
    await db.query(
      `select id from (${outcomes}) as o group by id having count(*) <> max(attempt) or min(attempt) <> 1`,
    ),
  ).toEqual([]);
});

test("each job has exactly one success although processes are killed", async () => {
  const db = await freshDatabase();
  const [victim] = await startWorkers(db, 1);
  await addJobs(db, 1_500);
  const [{ worker_id: victimId }] = await until(async () => {
    const rows = await db.query<{ worker_id: string }>(
      "select worker_id from graphile_worker._hathi_history_batches limit 1",
    );
    return rows.length > 0 && (rows as [{ worker_id: string }]);
  });
  const others = await startWorkers(db, 1);
  await db.query("select graphile_worker.add_job('work', '{\"ms\":2}'::json) from generate_series(1, 500)");
  victim!.kill("SIGKILL");
  await victim!.ended;
  // Again and again: a claim of the victim may still be under way on the server.
  const free = () => db.query("select graphile_worker.force_unlock_workers(array[$1])", [victimId]);
  await until(async () => (await free()) && (await jobsLeft(db)) === 0, {
    what: "all jobs are done",
    withinMs: 90_000,
  });
  await Promise.all(others.map((worker) => worker.stop()));
  await checkOutcomes(db, 2_000);
});

/** Every entry that a job has when its first attempt ends like this, as outcome and attempt. */
const expected = {
  succeed: ["succeeded 1"],
  fail: ["failed 1", "succeeded 2"],
  timeOut: ["failed 1", "succeeded 2"],
  // It may be postponed twice, and counts as failed then.
  snooze: ["failed 1", "snoozed 1", "snoozed 1", "succeeded 2"],
  giveUp: ["permanentlyFailed 1"],
  cancel: ["cancelled 1"],
  exhaust: ["failed 1", "permanentlyFailed 2"],
};

test("each attempt has exactly one outcome, however it ends, although processes are killed and their jobs recovered", async () => {
  const db = await freshDatabase();
  const options = {
    connectionString: db.url,
    concurrency: 10,
    pollInterval: 200,
    recovery: quickly,
    history: "outcomes",
    taskOptions: { end: { timeout: 2_000, abortGrace: 1_000, maxSnoozes: 2, backoff: { type: "fixed", delay: 1 } } },
  } as const;
  const ways = Object.keys(expected).filter((way) => way !== "timeOut");
  /** Few time out: what was running in a process that died runs one at a time. */
  const way = "case when n <= 4 then 'timeOut' else ($1::text[])[1 + n % cardinality($1)] end";
  const add = (): Promise<unknown> =>
    db.query(
      `select graphile_worker.add_job('end', json_build_object('as', ${way}, 'ms', 20), max_attempts => 2,
         queue_name => case when n % 10 = 0 then 'q' || n % 3 end) from generate_series(1, 70) as n`,
      [ways],
    );
  const entries = async (): Promise<number> => (await db.query(outcomes)).length;
  const workers = [await startWorker(options)];
  for (let kill = 0; kill < 2; kill++) {
    const before = await entries();
    await add();
    await until(async () => (await entries()) > before + 15, { what: "some jobs have ended", withinMs: 60_000 });
    const heir = await startWorker(options);
    await add();
    await until(() => workers.at(-1)!.starts().length > workers.at(-1)!.runs().length, { what: "some jobs run" });
    workers.at(-1)!.kill("SIGKILL");
    await workers.at(-1)!.ended;
    workers.push(heir);
  }
  await until(
    async () => {
      const jobs = await db.jobs();
      return jobs.every(({ attempts, max_attempts, locked_at }) => locked_at === null && attempts >= max_attempts);
    },
    { what: "every job has ended", withinMs: 90_000 },
  );
  await workers.at(-1)!.stop();

  const rows = await db.query<{ id: string; entries: string[] }>(
    `select id::text, array_agg(outcome || ' ' || attempt order by outcome, attempt) as entries from (${outcomes}) as o group by id order by id`,
  );
  expect(rows).toHaveLength(4 * 70);
  const kept = new Map(rows.map(({ id, entries: found }) => [id, found]));
  const added = await db.query<{ id: string; way: string }>(
    `select id::text, ${way} as way from (select id, (id - 1) % 70 + 1 as n from generate_series(1, 280) as id) as job`,
    [ways],
  );
  const wrong = added.filter(
    ({ id, way: as }) => String(kept.get(id)) !== String(expected[as as keyof typeof expected]),
  );
  expect(wrong.map((job) => ({ ...job, entries: kept.get(job.id) }))).toEqual([]);
  // Some were running when their process was killed, and have run again as the same attempt.
  const snoozed = new Set(added.filter((job) => job.way === "snooze").map(({ id }) => id));
  const starts = workers
    .flatMap((worker) => worker.starts())
    .filter(({ id }) => !snoozed.has(id))
    .map(({ id, attempt }) => `${id} ${attempt}`);
  expect(starts.length).toBeGreaterThan(new Set(starts).size);
});
