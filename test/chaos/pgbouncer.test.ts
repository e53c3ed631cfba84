import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 90_000 });

// The longest poll there is: what starts at all, starts because somebody noticed.
const never = 2 ** 31 - 1;
const needed = "PgBouncer is not installed here ('apt-get install pgbouncer'), so nothing is shown about it";

test("everything works through PgBouncer in transaction mode", async ({ skip }) => {
  skip(!hasPgBouncer, needed);
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
  skip(!hasPgBouncer, needed);
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
