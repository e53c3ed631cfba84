import { expect, onTestFinished, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 120_000 });

test.for(["directly", "through PgBouncer"])(
  "a worker that builds an index for limits, and one that waits for it, stop although an application holds it up (%s)",
  async (way, { skip }) => {
    skip(way !== "directly" && !hasPgBouncer, noPgBouncer);
    const db = await freshDatabase();
    const connectionString = way === "directly" ? db.url : await startPgBouncer(db.url);
    // An index that is built beside writers waits for the end of their transactions.
    const application = await db.pool.connect();
    onTestFinished(() => application.release());
    await application.query("begin; select graphile_worker.add_job('other')");
    const start = () =>
      startWorker(
        db,
        { sync: () => undefined },
        { connectionString, taskOptions: { sync: { concurrency: { limit: 1, key: "k" } } } },
      );
    const builders = () =>
      db.query<{ pid: number }>(
        "select pid from pg_stat_progress_create_index where datname = current_database() and phase like 'waiting for%'",
      );
    const builds = await start();
    await until(async () => (await builders()).length === 1, { what: "the build waits for the application" });
    const waits = await start();
    await until(() => waits.lines.some(({ message }) => /^Waiting for index .*, which process/.test(message)), {
      what: "another worker waits for that build",
    });
    await waits.runner.stop();
    expect(await builders()).toHaveLength(1);
    await builds.runner.stop();
    await until(async () => (await builders()).length === 0, { what: "the build was cancelled" });
    await application.query("commit");
  },
);
