import { expect, onTestFinished, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { statement } from "../../src/db/statement.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, testPool } from "../support/database.ts";
import { describeSchema } from "../support/describe-schema.ts";
import { rememberingLogger } from "../support/log.ts";
import { originalSchema } from "../support/original-schema.ts";
import { hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProcess } from "../support/process.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 90_000 });

// The longest poll there is: what starts at all, starts because somebody noticed.
const never = 2 ** 31 - 1;
test("everything works through PgBouncer in transaction mode", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await freshDatabase({ migrated: false });
  const url = await startPgBouncer(db.url);
  const options = { connectionString: url, concurrency: 8, pollInterval: never };
  const workers = [await startWorker({ ...options, crontab: "* * * * * work ?seconds=*" }), await startWorker(options)];

  const { logger } = rememberingLogger();
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  onTestFinished(() => utils.release());
  const jobs = await utils.addJobs(
    Array.from({ length: 300 }, (_, n) => ({
      identifier: "work",
      payload: { ms: 2 },
      ...(n % 3 === 0 && { queueName: `queue ${n % 2}` }),
    })),
  );
  const later = await utils.addJob("work", {}, { runAt: new Date(Date.now() + 1_500) });
  const replaced = await utils.addJob("work", {}, { jobKey: "key", runAt: new Date(Date.now() + 600_000) });
  const replacing = await utils.addJob("work", {}, { jobKey: "key" });
  expect(replacing.id).toBe(replaced.id);
  const failing = await utils.addJob("fail_first", {});
  const dead = await utils.addJob("fail_always", {}, { maxAttempts: 1 });
  const parked = await utils.addJob("work", {}, { runAt: new Date(Date.now() + 600_000) });
  expect(await utils.completeJobs([parked.id])).toMatchObject([{ id: parked.id }]);

  const ids = [...jobs, later, replacing, dead].map(({ id }) => id);
  const counts = (): Map<string, number> => countRuns(allRuns(workers));
  await until(() => ids.every((id) => counts().has(id)) && counts().get(failing.id) === 2, {
    what: "all jobs have run",
  });
  // Jobs that come when all is quiet, and those of cron, are found by polling.
  for (const worker of workers) await until(() => worker.logged(/Notifications do not arrive/).length > 0);
  const { id } = await utils.addJob("work", {});
  await until(() => counts().has(id));
  await until(() => counts().size > ids.length + 4, { what: "recurring jobs have run" });
  for (const worker of workers) expect(await worker.stop()).toBe(0);

  expect(ids.filter((id) => counts().get(id) !== 1)).toEqual([]);
  expect(findOverlaps(allRuns(workers))).toEqual([]);
  // Cron may have gone on adding until the end.
  const left = (await db.jobs()).filter(({ payload }) => !Object.hasOwn(payload as object, "_cron"));
  expect(left).toMatchObject([{ id: dead.id, last_error: "never", locked_by: null }]);
  for (const worker of workers) {
    const complaints = worker.logged().filter((line) => /^(warning|error)/.test(line));
    expect(complaints.toSorted()).toEqual([
      expect.stringContaining("Notifications do not arrive"),
      expect.stringContaining("Prepared statements do not survive"),
    ]);
  }
});

test("a direct line for LISTEN starts jobs at once behind PgBouncer, without a warning", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await freshDatabase();
  const worker = await startWorker({
    connectionString: await startPgBouncer(db.url),
    listenConnectionString: db.url,
    noPreparedStatements: true,
    pollInterval: never,
  });
  for (let round = 1; round <= 3; round++) {
    await db.query("select graphile_worker.add_job('work')");
    await until(() => worker.runs().length === round);
  }
  // By now the test of its hearing is over, and well.
  const [line] = await db.query(
    "select from pg_stat_activity where datname = current_database() and query ilike 'listen%'",
  );
  expect(line).toBeDefined();
  expect(await worker.stop()).toBe(0);
  expect(worker.logged().filter((line) => /^(warning|error)/.test(line))).toEqual([]);
});

test("a statement that took too long is cancelled by way of PgBouncer", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await freshDatabase();
  const pool = testPool(await startPgBouncer(db.url), 2);
  const database = poolDatabase(pool, { schema: db.schema, preparedStatements: false });
  const slow = statement<undefined, never>({
    name: "slow",
    patienceMs: 300,
    values: () => [],
    text: "select pg_sleep(600)",
  });
  await expect(database.run(slow, undefined)).rejects.toThrow("Query read timeout");
  await until(async () => {
    const active = await db.query(
      "select from pg_stat_activity where query like '%pg_sleep(600)' and state = 'active'",
    );
    return active.length === 0;
  });
});

test("several processes adopt a schema of the original through PgBouncer in transaction mode", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await originalSchema("0.18");
  await db.query(
    "select graphile_worker.add_job('later', run_at => now() + interval '1 year') from generate_series(1, 2000)",
  );
  const url = await startPgBouncer(db.url);
  const library = builtLibrary();
  const processes = Array.from({ length: 4 }, () => startProcess("migrate-process.mjs", [library, url, db.schema]));
  await Promise.all(processes.map((process) => process.says(/ready/)));
  for (const process of processes) process.send("go");
  await Promise.all(processes.map(({ ended }) => ended));
  expect(processes.map((process) => process.output())).toEqual(processes.map(() => "ready\nmigrated\n"));
  expect(await describeSchema(db)).toEqual(await describeSchema(await freshDatabase()));
  expect(await db.query("select from pg_index where not indisvalid")).toEqual([]);
  expect(await settingsOfBackends(url)).toEqual([{ search_path: '"$user", public', statement_timeout: "0" }]);
});

/** What whoever comes next finds in the server processes of a pooler: each different answer once. */
async function settingsOfBackends(url: string): Promise<unknown[]> {
  const pool = testPool(url, 4);
  const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
  // A transaction keeps its server process, so together they have all of them.
  for (const client of clients) await client.query("begin");
  const answers = new Set<string>();
  for (const client of clients) {
    const { rows } = await client.query(
      "select current_setting('search_path') as search_path, current_setting('statement_timeout') as statement_timeout",
    );
    answers.add(JSON.stringify(rows[0]));
    await client.query("commit");
    client.release();
  }
  return [...answers].map((answer) => JSON.parse(answer));
}
