import { expect, onTestFinished, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { countedPool } from "../support/counted-pool.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

test("new jobs of a task whose limit is used up cost its worker no claims, and jobs of other tasks start", async () => {
  const db = await freshDatabase();
  const { pool, sent } = countedPool(db.url);
  onTestFinished(() => pool.end());
  const held = heldTask();
  let ran = 0;
  await startWorker(
    db,
    { sync: held.task, free: () => void ran++ },
    { pgPool: pool, concurrency: 5, taskOptions: { sync: { concurrency: 1 } } },
  );
  const isLimitedClaim = (text: string): boolean => text.includes("_hathi_claim_limited(");
  const add = async (): Promise<void> => {
    const before = ran;
    await db.query("select graphile_worker.add_job('sync')");
    await db.query("select graphile_worker.add_job('free')");
    await until(() => ran > before);
  };
  await add();
  await held.begun(1);
  // By then the worker knows that the only place is taken.
  for (let n = 0; n < 3; n++) await add();
  const before = sent.filter(isLimitedClaim).length;
  for (let n = 0; n < 30; n++) await add();
  expect(sent.filter(isLimitedClaim).length - before).toBeLessThanOrEqual(1);
  held.release(0);
  await held.begun(2);
  expect(ran).toBe(34);
  held.releaseAll();
});

test("a worker whose tasks have no limits sends the claims that it would send without any", async () => {
  const db = await freshDatabase();
  await (await utilsOf(db)).setLimit("sync", { limit: 1 });
  const { pool, sent } = countedPool(db.url);
  onTestFinished(() => pool.end());
  const worker = await startWorker(db, { free: () => undefined }, { pgPool: pool });
  for (let n = 0; n < 5; n++) await db.query("select graphile_worker.add_job('free'), graphile_worker.add_job('sync')");
  await worker.completed(5);
  expect(sent.filter((text) => text.includes("_hathi_claim_jobs("))).not.toEqual([]);
  expect(sent.filter((text) => /_hathi_claim_limited|_hathi_announce_places/.test(text))).toEqual([]);
});

test("keys take turns without a limit: the only job of one does not wait for the many of another", async () => {
  const db = await freshDatabase();
  const ran: string[] = [];
  await startWorker(
    db,
    { sync: ({ t }: { t: string }) => void ran.push(t) },
    { concurrency: 1, taskOptions: { sync: { concurrency: { key: "t", fair: true } } } },
  );
  await until(
    async () =>
      (
        await db.query(
          "select from pg_index join pg_class on pg_class.oid = indexrelid where indisvalid and relname ~ '^_hathi_limit_w_'",
        )
      ).length === 1,
    { what: "the index is built" },
  );
  await db.query(`
    select graphile_worker.add_job('sync', json_build_object('t', case when n > 500 then 'new' else 'many' end))
    from generate_series(1, 501) as n`);
  await until(() => ran.length === 501, { withinMs: 40_000 });
  expect(ran.indexOf("new")).toBeLessThanOrEqual(2);
});
