import { expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker } from "../support/worker-process.ts";

vi.setConfig({ testTimeout: 90_000 });

test("limits set and cleared while two processes run act long before a poll, and a freed place is handed to the other process", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const options = { connectionString: db.url, concurrency: 3, pollInterval: 60_000 };
  const [one, other] = await Promise.all([startWorker(options), startWorker(options)]);
  const running = async (): Promise<number> =>
    (
      await db.query<{ n: number }>(
        "select count(*)::int as n from graphile_worker._private_jobs where locked_at is not null",
      )
    )[0]!.n;
  await utils.setLimit("hold", { limit: 2 });
  await db.query("select graphile_worker.add_job('hold') from generate_series(1, 8)");
  await until(async () => (await running()) === 2);
  const { reasons } = await utils.explainJob((await db.jobs()).find(({ locked_at }) => locked_at === null)!.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", limit: "hold", by: "concurrency", places: 2, taken: 2 });
  expect(reasons[0]!.message).toMatch(/2 of 2 places are taken, by job \d+ \(hold\) in pool-/);
  await utils.setLimit("hold", { limit: 4 });
  await until(async () => (await running()) === 4, { withinMs: 30_000 });
  // The other process takes what this one frees and does not want: it stops.
  const holder = one!.holds().length > 0 ? one! : other!;
  const heir = holder === one ? other! : one!;
  holder.release();
  await holder.stop();
  await until(() => heir.holds().length === 3, { withinMs: 30_000 });
  expect(await running()).toBeLessThanOrEqual(4);
  await utils.clearLimit("hold");
  expect(await utils.listLimits()).toEqual([]);
  heir.release();
  await until(async () => (await db.jobs()).length === 0);
});

test("jobs that an original worker runs are counted, and doctor says that it does not obey", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  await utils.setLimit("hold", { limit: 2 });
  const original = await startOriginal({
    connectionString: db.url,
    concurrency: 3,
    pollInterval: 60_000,
    forbiddenFlags: ["ours"],
  });
  await db.query("select graphile_worker.add_job('hold') from generate_series(1, 3)");
  await until(() => original.holds().length === 3);
  const ours = await startWorker({ connectionString: db.url, concurrency: 3, pollInterval: 200 });
  // The original must not take them when its own have ended and it is about to stop.
  await db.query("select graphile_worker.add_job('hold', flags => array['ours']) from generate_series(1, 2)");
  await db.query("select graphile_worker.add_job('work')");
  await until(() => ours.finished().length === 1);
  expect(ours.holds()).toEqual([]);
  const check = (await utils.examineHealth()).find(({ name }) => name === "limits")!;
  expect(check).toMatchObject({ status: "warning", message: expect.stringMatching(/they obey no limit/) });
  original.release();
  await original.stop();
  await until(() => ours.holds().length === 2);
  ours.release();
});
