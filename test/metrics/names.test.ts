import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { makeMetrics } from "../../src/metrics/index.ts";
import { countedPool } from "../support/counted-pool.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { parse, sample } from "./kit.ts";

/** The names in the tables of the page about monitoring. */
function documented(): string[] {
  const page = readFileSync(new URL("../../docs/monitoring.md", import.meta.url), "utf8");
  const cells = page.split("\n").flatMap((line) => /^\| (`hathi_[^|]+) \|/.exec(line)?.[1] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`(hathi_\w+)`/g)].map(([, name]) => name!)).sort();
}

test("the metrics that are exported are those that are documented", async () => {
  const db = await freshDatabase();
  const metrics = makeMetrics();
  const blocker = await db.pool.connect();
  await blocker.query("begin; select txid_current()");
  try {
    // More jobs than are counted, so that this is said.
    await db.query(`
      select graphile_worker.add_job('much');
      insert into graphile_worker._private_jobs (task_id, payload)
      select (select id from graphile_worker._private_tasks where identifier = 'much'), '{}' from generate_series(1, 10001)`);
    const { runner, completed } = await startWorker(
      db,
      { work: () => undefined },
      { metrics, taskOptions: { work: { concurrency: 5 } } },
    );
    await runner.addJob("work", {});
    await completed(1);
    const text = await until(async () => {
      const now = await metrics.prometheus();
      return (
        sample(now, "hathi_xmin_age_seconds") !== undefined &&
        sample(now, "hathi_event_loop_delay_seconds") !== undefined &&
        now
      );
    });
    const names = parse(text).map(({ name }) => name.replace(/_(bucket|sum|count)$/, ""));
    expect([...new Set(names)].filter((name) => name !== "hathi_info").sort()).toEqual(documented());
  } finally {
    await blocker.query("rollback");
    blocker.release();
  }
});

test("several workers that are scraped all the time send one statement a second together for that", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url, 20);
  const workers = 6;
  const metrics = Array.from({ length: workers }, () => makeMetrics());
  for (const each of metrics) await startWorker(db, { work: () => undefined }, { metrics: each, pgPool: pool });
  const reads = (): number => sent.filter((text) => text.includes("_hathi_read_rollup")).length;
  const startedAt = Date.now();
  // Everybody reads once at the start; from then on, six of them read every six seconds.
  await until(async () => {
    for (const each of metrics) await each.prometheus();
    return reads() >= workers + 4;
  });
  expect(reads()).toBeLessThanOrEqual(workers + 1 + ((Date.now() - startedAt) / 1_000) * 1.2);
});
