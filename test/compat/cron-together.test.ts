import { expect, onTestFinished, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { know, knownCrontabs, startCron, stopClock } from "./cron-kit.ts";

const since = "2025-01-01T00:00:00Z";
const crontab = "* * * * * a ?fill=20m\n*/2 * * * * b ?fill=20m\n*/5 * * * * c ?fill=20m&queue=q";

/** The runs from one minute of the hour to another, both included, entry by entry. */
function expectedRuns(from: number, to: number): string[] {
  const minutes = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  return Object.entries({ a: 1, b: 2, c: 5 }).flatMap(([task, step]) =>
    minutes.filter((min) => min % step === 0).map((min) => `${task} ${min}`),
  );
}

/** Every job, entry by entry; a minute scheduled twice is there twice. */
async function runs(db: TestDatabase): Promise<string[]> {
  const rows = await db.query<{ run: string }>(`
    select format('%s %s', identifier, extract(minute from run_at)::int) as run
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    order by identifier, run_at, job.id`);
  return rows.map(({ run }) => run);
}

/** Lets everyone read which crontabs are known, and nobody write it before the gate opens. */
async function closeGate(db: TestDatabase) {
  const client = await db.pool.connect();
  let isOpen = false;
  const open = async (): Promise<void> => {
    if (isOpen) return;
    isOpen = true;
    await client.query("commit");
    client.release();
  };
  onTestFinished(open);
  await client.query("begin; lock table graphile_worker._private_known_crontabs in exclusive mode");
  const waiting = async (): Promise<number> => {
    const locks = await db.query(`
      select from pg_locks where not granted and relation = 'graphile_worker._private_known_crontabs'::regclass`);
    return locks.length;
  };
  return { open, waiting };
}

test.each([
  { order: "ours, then an original", isOurs: [true, false] },
  { order: "an original, then ours", isOurs: [false, true] },
  { order: "two of each", isOurs: [true, false, false, true] },
])("$order, all with the same back-fill to do at once, schedule each entry and minute once", async ({ isOurs }) => {
  const db = await freshDatabase();
  stopClock("2026-01-01T00:30:30Z");
  for (const identifier of ["a", "b", "c"]) await know(db, identifier, since);
  const gate = await closeGate(db);
  const all: Awaited<ReturnType<typeof startCron>>[] = [];
  for (const [at, ours] of isOurs.entries()) {
    all.push(await startCron(ours, db, { crontab }));
    await until(async () => (await gate.waiting()) === at + 1);
  }
  expect(await db.jobs()).toEqual([]);
  await gate.open();
  for (const { started } of all) await started();
  // Each of them believed that all twenty minutes were still to be done.
  expect(all.map(({ count }) => count("cron:backfill"))).toEqual(isOurs.map(() => 20));
  expect(await runs(db)).toEqual(expectedRuns(11, 30));
});

test("two of each, all awake in the same minutes, schedule each entry and minute once", async () => {
  const db = await freshDatabase();
  const setClock = stopClock("2026-01-01T00:29:59.950Z");
  const all = await Promise.all([true, false, false, true].map((isOurs) => startCron(isOurs, db, { crontab })));
  for (const { started } of all) await started();
  const gate = await closeGate(db);
  setClock("2026-01-01T00:32:10Z");
  await until(async () => (await gate.waiting()) === all.length);
  expect(await db.jobs()).toEqual([]);
  await gate.open();
  for (const { count } of all) await until(() => count("cron:scheduled") === 3);
  expect(await runs(db)).toEqual(expectedRuns(30, 32));
});

test.each([
  { order: "an original has done, ours", firstIsOurs: false },
  { order: "ours has done, an original", firstIsOurs: true },
])("what $order does not do again, and goes on from there", async ({ firstIsOurs }) => {
  const db = await freshDatabase();
  const setClock = stopClock("2026-01-01T00:30:30Z");
  for (const identifier of ["a", "b", "c"]) await know(db, identifier, since);
  const first = await startCron(firstIsOurs, db, { crontab });
  await first.started();
  await first.stop();
  expect(await runs(db)).toEqual(expectedRuns(11, 30));
  const known = await knownCrontabs(db);

  const second = await startCron(!firstIsOurs, db, { crontab });
  await second.started();
  await second.stop();
  expect(await runs(db)).toEqual(expectedRuns(11, 30));
  expect(await knownCrontabs(db)).toEqual(known);

  setClock("2026-01-01T00:35:30Z");
  const third = await startCron(!firstIsOurs, db, { crontab });
  await third.started();
  await third.stop();
  expect(await runs(db)).toEqual(expectedRuns(11, 35));
});
