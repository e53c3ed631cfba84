import type { PoolClient } from "pg";
import { onTestFinished, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { until } from "../../support/wait.ts";
import { startWorker } from "../kit.ts";

async function openTransaction(db: TestDatabase): Promise<PoolClient> {
  const client = await db.pool.connect();
  onTestFinished(() => client.release());
  await client.query("begin");
  return client;
}

const tasks = { bad: () => undefined, good: () => undefined };
// A job that is noticed by a poll is noticed too late.
const options = { pollInterval: 3_600_000 };

test("an open transaction that adds the first job of a task holds up no other task, and its job runs when it commits", async () => {
  const db = await freshDatabase();
  const application = await openTransaction(db);
  await application.query("select graphile_worker.add_job('good')");
  const worker = await startWorker(db, tasks, options);
  await db.query("select graphile_worker.add_job('bad')");
  await worker.completed(1);
  await application.query("commit");
  await worker.completed(2);
  await worker.runner.stop();
});

test("a transaction that adds first jobs of tasks in any order is never the victim of a starting worker", async () => {
  const db = await freshDatabase();
  const application = await openTransaction(db);
  // Of two that wait for each other, it would be the first to look for a deadlock, and its victim.
  await application.query("set local deadlock_timeout = '300ms'");
  await application.query("select graphile_worker.add_job('good')");
  const worker = await startWorker(db, tasks, options);
  let hasClaimed = false;
  void worker.nth("worker:getJob:empty").then(() => (hasClaimed = true));
  await until(async () => {
    const [row] = await db.query<{ waits: boolean }>(`
      select exists (
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      ) as waits`);
    return row!.waits || hasClaimed;
  });
  await application.query("select graphile_worker.add_job('bad')");
  await application.query("commit");
  await worker.completed(2);
  await worker.runner.stop();
});
