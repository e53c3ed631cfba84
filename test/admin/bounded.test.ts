import { fc, test as propertyTest } from "@fast-check/vitest";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type JobFilter, type JobState, makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { times } from "../support/times.ts";

// Hundreds of small queries, and the machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

/* Reading very many jobs in steps of a bounded size. */

let db: TestDatabase;
let utils: QueueUtils;
beforeAll(async () => {
  db = await freshDatabase({ cleanUp: () => undefined });
  utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  await db.query("insert into graphile_worker._private_tasks (identifier) values ('a'), ('b')");
  // With gaps between the ids, and in every state.
  await db.query(`
    insert into graphile_worker._private_jobs (id, task_id, payload, run_at, attempts, locked_at, locked_by, last_error, created_at)
    overriding system value
    select n * 3, case when n % 3 = 0 then 2 else 1 end, json_build_object('n', n, 'secret', 'hush' || n),
      now() + case when n % 4 = 0 then interval '1 day' else interval '-1 day' end, case when n % 5 = 0 then 25 else 0 end,
      case when n % 7 = 0 then now() end, case when n % 7 = 0 then 'w' end, case when n % 5 = 0 then 'boom' end,
      '2026-01-01'::timestamptz + n * interval '1 hour'
    from generate_series(1, 200) as n`);
  await db.query(`
    insert into graphile_worker._hathi_history_attempts
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, error, error_class, fingerprint)
    select '2030-01-01', now(), n, n * 3, 'a', case when n % 10 = 0 then 25 else 24 end, 25, 'failed', 0, 0, 'w', now(), 'boom', 'Error', 'f' || n % 2
    from generate_series(5, 200, 5) as n`);
  // A third group, whose failures began two hours ago.
  await db.query(`
    insert into graphile_worker._hathi_history_attempts
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, error, error_class, fingerprint)
    select '2030-01-01', now() - n * interval '5 minutes', n, 100000 + n / 2, 'b', 1, 25, 'failed', 0, 0, 'w', now(), 'row ' || n, 'RowError', 'old'
    from generate_series(1, 24) as n`);
  await db.query(`
    insert into graphile_worker._hathi_error_groups
    select expires_on, fingerprint, entry % 8, min(task_identifier), min(error_class), count(*), min(settled_at), max(settled_at)
    from graphile_worker._hathi_history_attempts group by expires_on, fingerprint, entry % 8`);
});
afterAll(async () => {
  await utils.release();
  await db.drop();
});

const filters = fc.record(
  {
    state: fc.constantFrom<JobState>("waiting", "scheduled", "running", "dead"),
    task: fc.constantFrom("a", "b", "none"),
    search: fc.constantFrom("boom", '"n" : 1', "nothing"),
    since: fc.integer({ min: 0, max: 200 }).map((hours) => new Date(Date.UTC(2026, 0, 1, hours))),
    until: fc.integer({ min: 0, max: 200 }).map((hours) => new Date(Date.UTC(2026, 0, 1, hours))),
    upTo: fc.integer({ min: 0, max: 700 }),
    error: fc.constantFrom("f0", "f1"),
  },
  { requiredKeys: [] },
);

async function everyPage(filter: JobFilter, limit: number, lookAt: number): Promise<string[]> {
  const ids: string[] = [];
  let after: string | null = null;
  do {
    const page = await utils.listJobs(filter, { limit, lookAt, after });
    expect(page.jobs.length).toBeLessThanOrEqual(limit);
    ids.push(...page.jobs.map(({ id }) => id));
    after = page.next;
  } while (after !== null);
  return ids;
}

async function everyScan(filter: JobFilter, lookAt: number): Promise<string[]> {
  const ids: string[] = [];
  let after: string | null = null;
  do {
    const scan = await utils.scanJobs(filter, { lookAt, after });
    expect(scan.ids.length).toBeLessThanOrEqual(lookAt);
    ids.push(...scan.ids);
    after = scan.next;
  } while (after !== null);
  return ids;
}

const steps = [filters, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 7, max: 300 })] as const;

async function checkSteps(filter: JobFilter, limit: number, lookAt: number): Promise<void> {
  const all = (await utils.listJobs(filter, { limit: 1000 })).jobs.map(({ id }) => id);
  expect(await everyPage(filter, limit, lookAt)).toEqual(all);
  expect(await everyScan(filter, lookAt)).toEqual([...all].reverse());
  expect(await utils.countJobs(filter)).toBe(all.length);
}

propertyTest.prop([...steps], { numRuns: times(20) })(
  "steps of any size find the same jobs as one query for all, each once and in order",
  checkSteps,
);

test("running and dead jobs are indexed where the table is large, and where it is not nothing is built", async () => {
  const names = async (): Promise<string[]> =>
    (
      await db.query<{ name: string }>(
        "select indexname as name from pg_indexes where schemaname = 'graphile_worker' and indexname ~ '^_hathi_jobs_(running|dead)$' order by 1",
      )
    ).map(({ name }) => name);
  expect(await utils.indexStates()).toBe(false);
  expect(await names()).toEqual([]);
  expect(await utils.indexStates({ leastPages: 1 })).toBe(true);
  expect(await names()).toEqual(["_hathi_jobs_dead", "_hathi_jobs_running"]);
  expect(await utils.indexStates({ leastPages: 1 })).toBe(true);
});

propertyTest.prop([...steps], { numRuns: times(20) })(
  "the same with indexes of running and dead jobs",
  async (...given) => {
    await utils.indexStates({ leastPages: 1 });
    await checkSteps(...given);
  },
);

test("jobs are found by the error of their last attempt, not by an earlier one", async () => {
  const found = (await utils.listJobs({ error: "f0" }, { limit: 1000 })).jobs;
  // Those whose attempt 24 failed so have failed once more since.
  expect(found.map(({ id }) => Number(id) / 3)).toEqual(Array.from({ length: 20 }, (_, n) => 200 - n * 10));
  expect((await utils.listJobs({ error: "f1" })).jobs).toEqual([]);
});

test("what is redacted is not found by searching for it", async () => {
  expect((await utils.listJobs({ search: "HUSH77" })).jobs).toHaveLength(1);
  expect((await utils.listJobs({ search: "HUSH77", redact: ["secret"] })).jobs).toEqual([]);
  expect((await utils.listJobs({ search: '"n"', redact: ["**.secret"] }, { limit: 300 })).jobs).toHaveLength(200);
});

test("a statement that takes too long is stopped on the server, and the next one works", async () => {
  const hasty = await makeWorkerUtils(
    { connectionString: db.url, maxPoolSize: 1, logger: rememberingLogger().logger },
    { statementTimeout: 100 },
  );
  const blocker = await db.pool.connect();
  try {
    await blocker.query("begin; lock table graphile_worker._private_tasks");
    await expect(hasty.listJobs({ task: "a" })).rejects.toThrow(/timeout/);
  } finally {
    await blocker.query("rollback");
    blocker.release();
  }
  expect((await hasty.listJobs({ task: "a" }, { limit: 1 })).jobs).toHaveLength(1);
  await hasty.release();
});

test("of each group of errors a bounded number of failures is looked at, with a trend over time", async () => {
  const [old] = await utils.listErrors({ fingerprint: "old" });
  const since = new Date(old!.last_at.getTime() - 56 * 60_000);
  const groups = await utils.listErrors({ since, steps: 4 });
  expect(groups.map(({ fingerprint }) => fingerprint)).toEqual([expect.any(String), expect.any(String), "old"]);
  expect(groups[0]).toMatchObject({ count: 20, has_more: false, jobs: 20, trend: [0, 0, 0, 20] });
  // Twelve of its failures are since then, of seven jobs.
  expect(groups[2]).toMatchObject({ count: 12, has_more: false, jobs: 7, example_error: "row 1" });
  expect(groups[2]!.trend).toHaveLength(4);
  expect(groups[2]!.trend[0]).toBeGreaterThan(1);
  expect(groups[2]!.trend.reduce((sum, count) => sum + count)).toBe(12);
  expect(groups[2]!.first_at.getTime()).toBeGreaterThan(since.getTime());

  // A group that began later than that is counted as a whole, another one as far as it was looked at.
  const few = await utils.listErrors({ since, lookAt: 5 });
  expect(few.map(({ count, has_more, jobs }) => ({ count, has_more, jobs }))).toEqual([
    { count: 20, has_more: false, jobs: 5 },
    { count: 20, has_more: false, jobs: 5 },
    { count: 5, has_more: true, jobs: 3 },
  ]);
  expect(few.every(({ trend }) => trend.length === 0)).toBe(true);
  expect(await utils.listErrors({ task: "b", lookAt: 5 })).toMatchObject([{ fingerprint: "old", count: 24, jobs: 3 }]);
  expect(await utils.listErrors({ fingerprint: "f1", lookAt: 1_000 })).toMatchObject([
    { fingerprint: "f1", count: 20 },
  ]);
  expect(await utils.listErrors({ since: new Date(Date.now() + 60_000) })).toEqual([]);
  await expect(utils.listErrors({ steps: 4 })).rejects.toThrow("'steps' needs 'since'.");
});
