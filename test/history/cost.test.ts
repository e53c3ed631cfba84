import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

test("claims and settles never read history, and leave nothing of finished jobs in the table of jobs", async () => {
  const db = await freshDatabase();
  const parts = (): Promise<{ part: string; scans: number; rows: number }[]> =>
    db.query(`
      select relname as part, (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int as scans, n_tup_ins::int as rows from pg_stat_user_tables
      where relname ~ '^_hathi_history_.*_[0-9]{8}$'`);
  const { runner, completed } = await startWorker(
    db,
    { good: () => 7, bad: () => Promise.reject(new Error("no")) },
    { history: "outcomes", taskOptions: { good: { keepResult: true } }, concurrency: 5 },
  );
  await until(async () => (await parts()).length === 12, { what: "the partitions for 1 and 14 days are made" });
  const jobs = Array.from({ length: 300 }, (_, n) => ({
    identifier: n % 3 === 0 ? "bad" : "good",
    payload: {},
    maxAttempts: 1,
  }));
  await runner.addJobs(jobs);
  await completed(300);
  await runner.stop();
  // A backend reports what it did when it ends.
  const used = await until(async () => {
    const all = await parts();
    return all.reduce((sum, { rows }) => sum + rows, 0) === 300 && all;
  });
  // Making a partition scans it a few times; those with rows were not scanned more often than those without.
  const scansOf = (isUsed: boolean): Set<number> =>
    new Set(
      used.filter(({ part, rows }) => part.includes("attempts") && rows > 0 === isUsed).map(({ scans }) => scans),
    );
  expect(scansOf(true).size).toBe(1);
  expect(scansOf(true)).toEqual(scansOf(false));
  expect(
    await db.query("select count(*)::int as left from graphile_worker._private_jobs where attempts < max_attempts"),
  ).toEqual([{ left: 0 }]);
  expect(await db.jobs()).toHaveLength(100); // those that failed permanently, as without history
});
