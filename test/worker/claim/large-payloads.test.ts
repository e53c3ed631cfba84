import { randomBytes } from "node:crypto";
import type { PoolClient, QueryConfig } from "pg";
import { expect, test } from "vitest";
import { poolDatabase } from "../../../src/db/database.ts";
import { OutageLog } from "../../../src/db/outage-log.ts";
import { claimJobs } from "../../../src/db/statements/claim.ts";
import type { Job } from "../../../src/job.ts";
import { runOnce } from "../../../src/runner/run.ts";
import { runTaskListOnce } from "../../../src/runner/run-task-list.ts";
import { deferred } from "../../../src/util/deferred.ts";
import { sleep } from "../../../src/util/sleep.ts";
import { PayloadReader } from "../../../src/worker/claim/payload-reader.ts";
import { refusalOf } from "../../../src/worker/claim/unreadable.ts";
import { Outage } from "../../../src/worker/settle/outage.ts";
import type { Strays } from "../../../src/worker/settle/strays.ts";
import { freshDatabase, type TestDatabase, testPool } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";
import { startProxy } from "../../support/proxy.ts";
import { until } from "../../support/wait.ts";
import { startWorker } from "../kit.ts";

/** Of every way in which PostgreSQL keeps a value: in its row, compressed in its row, aside, and compressed aside. */
const payloads: readonly unknown[] = [
  { small: "x" },
  { inRow: randomBytes(700).toString("hex") },
  { compressed: "x".repeat(100_000) },
  { aside: randomBytes(30_000).toString("base64") },
  null,
  { compressedAside: Array.from({ length: 20_000 }, (_, n) => ({ n, text: `ünï “${n}” \\ \n` })) },
  { small: "y" },
];

function sizeOf(payload: unknown): number {
  return JSON.stringify(payload).length;
}

async function addAll(db: TestDatabase, queueName?: string): Promise<void> {
  for (const payload of payloads) {
    await db.query("select graphile_worker.add_job('t', $1::json, queue_name => $2)", [
      JSON.stringify(payload),
      queueName ?? null,
    ]);
  }
}

test.each([undefined, "q"])(
  "payloads of every size arrive whole, and in order in a queue (queue: %s)",
  async (queueName) => {
    const db = await freshDatabase();
    await addAll(db, queueName);
    const arrived: unknown[] = [];
    await runOnce({
      noHandleSignals: true,
      connectionString: db.url,
      taskList: { t: (payload) => void arrived.push(payload) },
    });
    // Without a queue, what had to be read first may start later.
    if (queueName) expect(arrived).toEqual(payloads);
    else expect(arrived.map(sizeOf).sort()).toEqual(payloads.map(sizeOf).sort());
    expect(await db.jobs()).toEqual([]);
  },
);

test("payloads of every size arrive on a single client", async () => {
  const db = await freshDatabase();
  await addAll(db);
  const arrived: unknown[] = [];
  const client = await testPool(db.url, 1).connect();
  await runTaskListOnce({ noHandleSignals: true }, { t: (payload) => void arrived.push(payload) }, client);
  client.release();
  expect(arrived.map(sizeOf).sort()).toEqual(payloads.map(sizeOf).sort());
});

test("jobs whose large payload cannot be read because the connection breaks are returned and run", async () => {
  const db = await freshDatabase();
  await addAll(db, "q");
  const pgPool = testPool(db.url, 4);
  let breaks = 0;
  pgPool.on("connect", (client) => {
    const query = client.query.bind(client) as (config: QueryConfig, ...rest: unknown[]) => unknown;
    client.query = ((config: QueryConfig, ...rest: unknown[]) => {
      const isRead = config.name?.startsWith("read_payloads") ?? false;
      return query(
        isRead && breaks++ === 0 ? { text: "select pg_terminate_backend(pg_backend_pid())" } : config,
        ...rest,
      );
    }) as PoolClient["query"];
  });
  const arrived: unknown[] = [];
  const { runner, completed, lines } = await startWorker(
    db,
    { t: (payload) => void arrived.push(payload) },
    { pgPool },
  );
  await completed(payloads.length);
  await runner.stop();
  expect(breaks).toBeGreaterThan(1);
  expect(arrived).toEqual(payloads);
  expect(lines.filter(({ level }) => level === "error")).toHaveLength(1);
});

test("a run that is to end does not end while a queue is still to be released: the jobs behind it run, too", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  await db.query(addBig, ["t", 8_000, "q", 25]);
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  const pgPool = testPool(db.url, 4);
  const settled = deferred();
  pgPool.on("connect", (client) => {
    const query = client.query.bind(client) as (config: QueryConfig, ...rest: unknown[]) => Promise<unknown>;
    client.query = (async (config: QueryConfig, ...rest: unknown[]) => {
      const isReturn = config.name?.startsWith("return_jobs") ?? false;
      const isSettle = config.name?.startsWith("complete_jobs") ?? false;
      const isRelease = isSettle && config.values?.[1] === "{}";
      // The jobs behind the big one come back after the first has been settled, and its queue is released a good while after that.
      if (isReturn) await settled.promise;
      if (isRelease) await sleep(300);
      const answer = await query(config, ...rest);
      if (isSettle && !isRelease) settled.resolve();
      return answer;
    }) as PoolClient["query"];
  });
  const arrived: string[] = [];
  const preset = { worker: { localQueue: { size: 5 } } };
  const taskList = { t: (_payload: unknown, { job }: { job: Job }) => void arrived.push(job.id) };
  await runOnce({ noHandleSignals: true, pgPool, preset, taskList });
  expect(arrived).toEqual(["1", "2", "3"]);
});

/** Bytes that do not compress, as a JSON string. */
const incompressible = "to_json(string_agg(encode(sha512((seed || ' ' || n)::bytea), 'base64'), ''))";
const addBig = `
  select from graphile_worker.add_job($1, (select ${incompressible} from generate_series(1, $2::integer) as n, (select random() as seed) as seed),
    queue_name => $3, max_attempts => $4)`;

test("a payload that takes longer to arrive than the query timeout does arrive, and what is small does not wait for it", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  await db.query(addBig, ["big", 20_000, null, 25]); // 1.8 MB
  const pgPool = testPool(proxy.url, 4, { query_timeout: 500 });
  const ended: string[] = [];
  proxy.throttle(600_000);
  const { completed, runner, of } = await startWorker(
    db,
    {
      big: (payload) => void ended.push(`big ${String(payload).length > 1_700_000}`),
      small: () => void ended.push("small"),
    },
    { pgPool, concurrency: 1 },
  );
  // Its payload is on its way, and the only slot is free for others.
  await until(async () => (await db.job(1))?.locked_by);
  await db.query("select graphile_worker.add_job('small') from generate_series(1, 3)");
  await completed(4);
  expect(ended).toEqual(["small", "small", "small", "big true"]);
  expect(of("job:error")).toEqual([]);
  await runner.stop();
});

test("a payload that no string can hold uses its attempts and fails for good, with a clear error; its queue goes on", async () => {
  const db = await freshDatabase();
  await db.query(addBig, ["t", 8_000, "q", 1]);
  await db.query(
    "select graphile_worker.add_job('t', to_json(repeat('x', 100000)), queue_name => 'q') from generate_series(1, 2)",
  );
  const { reader, jobs, read, returned } = await claimForReader(db, { maxBytes: 500_000 });
  expect(reader.take(jobs, new Set(jobs))).toEqual([]);
  await until(() => read.length === 1);
  // Those behind it start after it, or are returned.
  expect([...read.flat(), ...returned].map(({ id }) => id)).toEqual(["1", "2", "3"]);
  expect(reader.jobs()).toEqual([]);
  const refusal = refusalOf(read[0]![0]!)!;
  await expect(async () => refusal({} as never, {} as never)).rejects.toThrow(
    /The payload has \d{6} bytes; a string of this process holds at most 500000/,
  );
});

test("a big payload behind a small one of its queue goes back in line, and the small one runs", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  await db.query(addBig, ["t", 8_000, "q", 25]);
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  const { reader, jobs, read, returned } = await claimForReader(db, {});
  expect(reader.take(jobs, new Set([jobs[1]!]))).toEqual([]);
  await until(() => read.length === 1);
  expect(read[0]!.map(({ id }) => id)).toEqual(["1"]);
  expect(returned.map(({ id }) => id)).toEqual(["2", "3"]);
});

test("jobs with big payloads that are not read when the worker stops are returned at once", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  for (const queue of [null, "q"]) await db.query(addBig, ["big", 20_000, queue, 25]);
  const { runner } = await startWorker(db, { big: () => undefined }, { connectionString: proxy.url });
  await until(() => proxy.connections() > 0);
  proxy.throttle(20_000);
  await until(async () => (await db.jobs()).every(({ locked_by }) => locked_by !== null));
  await runner.stop();
  expect(await db.jobs()).toMatchObject([
    { locked_by: null, attempts: 0 },
    { locked_by: null, attempts: 0 },
  ]);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
});

test("a payload of more than half a gigabyte fails its job, an error as long is cut, and the process stays alive", async () => {
  const db = await freshDatabase();
  await db.query(
    "select from graphile_worker.add_job('huge', to_json(repeat('x', 540 * 1024 * 1024)), max_attempts => 1)",
  );
  await db.query("select graphile_worker.add_job('small')");
  await db.query("update graphile_worker._private_jobs set last_error = repeat('x', 540 * 1024 * 1024) where id = 2");
  const errors: unknown[] = [];
  const { of, completed, runner } = await startWorker(db, {
    huge: () => undefined,
    small: (_payload, { job }) => void errors.push(job.last_error),
  });
  const { job, error } = await until(() => of("job:failed")[0], { withinMs: 120_000 });
  expect(job.id).toBe("1");
  expect(String(error)).toMatch(/The payload has 566231042 bytes/);
  await completed(2);
  expect(errors).toEqual(["x".repeat(8_000)]);
  // Not the whole row, which this process could not hold either.
  const [row] = await db.query("select attempts, max_attempts, locked_by from graphile_worker._private_jobs");
  expect(row).toEqual({ attempts: 1, max_attempts: 1, locked_by: null });
  await runner.stop();
}, 240_000);

test("a payload with more values than an array can hold fails its job, and the process stays alive", async () => {
  const db = await freshDatabase();
  await db.query(
    "select from graphile_worker.add_job('many', ('[' || repeat('1,', 140000000) || '1]')::json, max_attempts => 1)",
  );
  await db.query("select graphile_worker.add_job('small')");
  const { of, completed, runner } = await startWorker(db, { many: () => undefined, small: () => undefined });
  const { job, error } = await until(() => of("job:failed")[0], { withinMs: 120_000 });
  expect(job.id).toBe("1");
  expect(String(error)).toMatch(/The payload holds 140000001 values/);
  await completed(2);
  await runner.stop();
}, 240_000);

test("errors that take little space because they are compressed do not make a claim's answer long", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t') from generate_series(1, 50)");
  await db.query("update graphile_worker._private_jobs set last_error = repeat('x', 500000)");
  const [stored] = await db.query("select max(pg_column_size(last_error)) as bytes from graphile_worker._private_jobs");
  expect(stored!.bytes).toBeLessThan(8_000);
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const [claimed] = await database.run(claimJobs, {
    poolId: "pool",
    taskIds: [1],
    wanted: 50,
    perQueue: 1,
    forbidden: null,
    accepted: null,
    clock: null,
    marks: [],
    withQueues: true,
    relaxed: true,
  });
  expect(JSON.parse(claimed!.jobs!)).toHaveLength(50);
  expect(claimed!.jobs!.length).toBeLessThan(50 * 9_000);
});

/** Jobs of one pool, and a reader for them. */
async function claimForReader(
  db: TestDatabase,
  options: { maxBytes?: number },
): Promise<{ reader: PayloadReader; jobs: Job[]; read: (readonly Job[])[]; returned: Job[] }> {
  await db.query("update graphile_worker._private_jobs set locked_by = 'pool', locked_at = now()");
  const jobs = (await db.jobs()).map((job) => ({ ...job, payload: null })) as unknown as Job[];
  const read: (readonly Job[])[] = [];
  const returned: Job[] = [];
  const { logger } = rememberingLogger();
  const reader = new PayloadReader({
    database: poolDatabase(db.pool, { schema: db.schema, preparedStatements: true }),
    outage: new Outage(new OutageLog(logger), logger, () => undefined),
    strays: { expect: () => expect.unreachable("nothing is lost") } as unknown as Strays,
    onRead: (some) => void read.push(some),
    isWaiting: () => false,
    onReturn: (some) => void returned.push(...some),
    ...options,
  });
  return { reader, jobs, read, returned };
}
