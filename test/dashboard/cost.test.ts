import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LimitsPage } from "../../src/dashboard/contract.ts";
import { routes } from "../../src/dashboard/server/routes.ts";
import { type LimitIndexRow, limitIndexText, listLimitIndexes } from "../../src/db/statements/limit-indexes.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { type Desk, openDesk } from "./kit.ts";

/*
 * What each page reads from tables that are much larger than it. Time depends on the machine, so pages of 8 kB are counted: every statement of a request is run again
 * under `explain (analyze, buffers)`.
 */

const jobs = 60_000;
/** A scan of all jobs, or of the finished ones, reads more than twice as many. */
const mostPages = 1_200;
/** Before version 17 PostgreSQL walks down an index for each id of a list, and the lists here have up to 400. */
const mostWalks = Number(process.env.POSTGRES_VERSION || 18) < 17 ? 400 : 0;

let db: TestDatabase;
let pool: pg.Pool;
let desk: Desk;
const asked: { text: string; values: unknown[] }[] = [];

beforeAll(async () => {
  db = await freshDatabase({ cleanUp: () => undefined });
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  await db.query(`
    insert into graphile_worker._private_tasks (identifier) select 'task_' || n from generate_series(1, 5) as n;
    insert into graphile_worker._private_tasks (identifier) values ('rare');
    insert into graphile_worker._private_job_queues (queue_name) select 'queue_' || n from generate_series(1, 50) as n;
    insert into graphile_worker._private_jobs (task_id, job_queue_id, payload, run_at, attempts, key, created_at, locked_at, locked_by, last_error)
    select case when n % 6000 = 1 then 6 else 1 + n % 5 end, case when n % 10 = 0 then 1 + n % 50 end,
      json_build_object('n', n, 'tenant', 't' || n % 300, 'text', repeat('x', 300)), now() + (n % 3 - 1) * interval '1 hour',
      case when n % 500 = 7 then 25 else 0 end, case when n % 100 = 1 then 'key_' || n end, now() - interval '1 hour',
      case when n % 9000 = 3 then now() end, case when n % 9000 = 3 then 'pool-1' end, case when n % 500 = 7 then 'boom' end
    from generate_series(1, ${jobs}) as n;
    insert into graphile_worker._hathi_history_batches
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select current_date + 2, now() - n * interval '1 second', n, 'task_' || 1 + n % 5, 'pool-1', 1000000 + n * 100, 1000000 + n * 100 + 99,
      array(select generate_series(1000000 + n * 100, 1000000 + n * 100 + 99)), array_fill(1, array[100]), array_fill(2, array[100])
    from generate_series(1, 10000) as n;
    insert into graphile_worker._hathi_history_attempts
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, error, error_class, fingerprint)
    select current_date + 15, now() - n * interval '1 second', n, n, 'task_' || 1 + n % 5, 25, 25, 'permanentlyFailed', 1, 2, 'pool-1', now(), repeat('boom ', 80), 'Error', 'print' || n % 100
    from generate_series(1, 40000) as n;
    insert into graphile_worker._hathi_error_groups
    select expires_on, fingerprint, entry % 8, min(task_identifier), min(error_class), count(*), min(settled_at), max(settled_at)
    from graphile_worker._hathi_history_attempts group by expires_on, fingerprint, entry % 8;
    select from graphile_worker._hathi_declare_limits(array['task_5'], '[{"scope": "task", "name": "task_5", "kind": "concurrency", "path": ["tenant"], "places": 2,
      "period_ms": null, "burst": 0, "weight": 1, "weight_path": null, "cost": 1, "cost_path": null, "tasks": ["task_5"]}]', 'test')`);
  await utils.indexStates({ leastPages: 1_000 });
  // As a worker with limits does.
  const wanted = await db.query<LimitIndexRow>(listLimitIndexes.text);
  for (const index of wanted) await db.query(limitIndexText(index));
  await utils.release();
  // Pages that another snapshot may still see differently are read once more; it is gone in a moment.
  const isVisible = async (): Promise<boolean> => {
    await db.query("vacuum analyze");
    const rows = await db.query(
      "select from pg_class where relkind = 'r' and relnamespace = 'graphile_worker'::regnamespace and relallvisible < relpages",
    );
    return rows.length === 0;
  };
  await until(isVisible, { what: "all pages are visible to all", withinMs: 60_000 });
  pool = new pg.Pool({ connectionString: db.url, max: 2 });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((config: unknown, values?: unknown, ...rest: unknown[]) => {
      const { text, values: own } = (typeof config === "object" && config !== null ? config : { text: config }) as {
        text?: unknown;
        values?: unknown;
      };
      const given = Array.isArray(own) ? own : Array.isArray(values) ? values : [];
      if (typeof text === "string") asked.push({ text, values: given as unknown[] });
      return query(config, values, ...rest);
    }) as typeof client.query;
  });
  desk = openDesk(db, { pgPool: pool }, true);
}, 120_000);
afterAll(async () => {
  await desk.dashboard.close();
  await pool.end();
  await db.drop();
});

/** Pages that the statements of one request read, those in functions included. */
async function pagesOf(address: string): Promise<{ pages: number; most: string }> {
  // Nothing is to be shown from memory, and what goes on in the background belongs to it.
  await desk.dashboard.close();
  desk = openDesk(db, { pgPool: pool }, true);
  asked.length = 0;
  const { status, body } = await desk.get(address);
  expect(status, JSON.stringify(body)).toBe(200);
  await desk.dashboard.close();
  const statements = asked.splice(0).filter(({ text }) => /^\s*(select|with|update|insert)\b/i.test(text));
  const client = await db.pool.connect();
  const read: { pages: number; text: string }[] = [];
  try {
    for (const { text, values } of statements) {
      const explain = async (): Promise<Record<string, number>> => {
        await client.query("begin");
        const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
        await client.query("rollback");
        return rows[0]["QUERY PLAN"][0].Plan;
      };
      // A new connection reads hundreds of pages of the catalog for the first statement of each function.
      await explain();
      const plan = await explain();
      read.push({ pages: plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!, text });
    }
  } finally {
    client.release();
  }
  const [most] = read.sort((a, b) => b.pages - a.pages);
  return { pages: read.reduce((sum, { pages }) => sum + pages, 0), most: `${most?.pages} pages: ${most?.text}` };
}

const addresses = [
  "session",
  "form?task=task_3",
  "overview?span=1h",
  "jobs",
  "jobs?state=dead",
  "jobs?state=running",
  "jobs?state=waiting",
  "jobs?state=waiting&task=task_3",
  "jobs?task=rare",
  "jobs?state=scheduled&task=rare&search=nothing",
  "jobs?queue=queue_5",
  "jobs?state=waiting&queue=queue_5",
  "jobs?error=print7",
  "jobs?key=key_1001",
  "jobs?after=30000",
  "count?state=dead",
  "count?task=rare",
  `job?id=${jobs / 2}`,
  `job?id=${jobs / 2 + 4}`,
  "job?id=1500050",
  "errors?span=30d",
  "errors?task=rare&span=30d",
  "error?fingerprint=print7",
  "tasks?span=1h",
  "task?name=task_3&span=1h",
  "task?name=rare&span=1h",
  "queues",
  "queues?search=queue_7",
  "cron",
  "workers",
  "limits",
  "history",
  "history?task=task_3",
  "history?task=task_3&outcome=succeeded",
  "history?outcome=succeeded",
  "history?outcome=cancelled",
  "history?task=rare",
  "history?key=none",
  "history?error=print7",
  "audit",
  "find?q=queue_7",
  `find?q=${jobs / 2}`,
];

test("the tables are larger than what a page may read", async () => {
  const [size] = await db.query<{ jobs: number; batches: number; attempts: number }>(`
    select pg_relation_size('graphile_worker._private_jobs') / 8192 as jobs, pg_relation_size('graphile_worker._hathi_history_batches_rest') / 8192 as batches,
      pg_relation_size('graphile_worker._hathi_history_attempts_rest') / 8192 as attempts`);
  for (const pages of Object.values(size!)) expect(Number(pages)).toBeGreaterThan(2 * mostPages);
});

test.each(addresses)("%s reads a bounded part of them", async (address) => {
  const { pages, most } = await pagesOf(address);
  expect(pages, most).toBeLessThan(mostPages + mostWalks);
});

test("the keys that wait at a limit are those of the jobs that come next, the most frequent first", async () => {
  const next = await db.query<{ key: string; jobs: number }>(`
    select key, count(*)::integer as jobs
    from (
      select payload ->> 'tenant' as key from graphile_worker._private_jobs
      where task_id = 5 and locked_at is null and attempts < max_attempts and job_queue_id is null and run_at <= now()
      order by priority, run_at, id limit 300
    ) as next
    group by key order by jobs desc, key limit 10`);
  desk = openDesk(db, { pgPool: pool }, true);
  const limit = await until(async () => {
    const [found] = (await desk.get<LimitsPage>("limits")).body.limits;
    return found?.waitingLookedAt === 300 && found;
  });
  expect(limit.waitingKeys).toEqual(next);
});

test("no page is without a bound here", () => {
  const known = new Set(addresses.map((address) => address.split("?")[0]));
  // A stream gives the same pages; a bulk action is looked up by its id.
  const others = ["stream", "bulk"];
  const reading = routes.filter(({ method, path }) => method === "GET" && !others.includes(path));
  expect(reading.map(({ path }) => path).filter((path) => !known.has(path))).toEqual([]);
});
