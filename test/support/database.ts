import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { forSchema } from "../../src/db/statement.ts";
import type { DbJob } from "../../src/job.ts";

export type JobRow = DbJob & { task_identifier: string; queue_name: string | null };

/** A database of one's own, with the questions that tests ask most. SQL is written against `graphile_worker.`. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  readonly schema: string;
  /** For the test's own queries, and for code under test that takes a pool. */
  readonly pool: pg.Pool;
  query<Row extends pg.QueryResultRow = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** The job with this id, or undefined once it is gone. */
  job(id: string | number): Promise<JobRow | undefined>;
  /** All jobs, oldest first. */
  jobs(): Promise<JobRow[]>;
  drop(): Promise<void>;
}

export interface FreshDatabaseOptions {
  /** With the schema in it (default), or empty. */
  readonly migrated?: boolean;
  /** Only for the questions above; a migrated database always has `graphile_worker`. */
  readonly schema?: string;
  /** Told how to drop the database. Default: vitest's `onTestFinished`; in `beforeAll`, keep it for `afterAll`. */
  readonly cleanUp?: (drop: () => Promise<void>) => void;
}

/** Makes a database that only this test knows, and drops it when the test is over. */
export async function freshDatabase(options: FreshDatabaseOptions = {}): Promise<TestDatabase> {
  const { migrated = true, schema = "graphile_worker", cleanUp = onTestFinished } = options;
  const { url: serverUrl, prefix, clones } = inject("postgres");
  const template = migrated ? `${prefix}_template` : "template0";
  const name = `${prefix}_${randomBytes(5).toString("hex")}`;
  await onServer(
    serverUrl,
    ...(clones ? ["set file_copy_method = clone"] : []),
    `create database ${name} template ${template}${clones ? " strategy file_copy" : ""}`,
  );

  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = makePool(url.href);
  const drop = async (): Promise<void> => {
    await pool.end();
    await onServer(serverUrl, `drop database if exists ${name} with (force)`);
  };
  cleanUp(drop);

  const query: TestDatabase["query"] = async (text, values) =>
    (await pool.query(forSchema(text, schema), values)).rows as never;
  const select = `
    select job.*, task.identifier as task_identifier, queue.queue_name
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id`;
  return {
    url: url.href,
    name,
    schema,
    pool,
    query,
    job: async (id) => (await query<JobRow>(`${select} where job.id = $1`, [id]))[0],
    jobs: () => query<JobRow>(`${select} order by job.id`),
    drop,
  };
}

/** A pool that survives its server: an idle connection that is cut must not end the test process. */
function makePool(url: string, max = 10, config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max, ...config });
  pool.on("error", () => undefined);
  return pool;
}

/** A pool that is ended when the test is over, whatever happened to its connections. */
export function testPool(url: string, max?: number, config?: pg.PoolConfig): pg.Pool {
  const pool = makePool(url, max, config);
  onTestFinished(async () => {
    if (!pool.ended) await pool.end();
  });
  return pool;
}

async function onServer(url: string, ...texts: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const text of texts) await client.query(text);
  } finally {
    await client.end();
  }
}
