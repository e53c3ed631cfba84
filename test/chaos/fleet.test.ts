import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { Logger, makeWorkerUtils, type Runner, run } from "../../src/index.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { dice, shuffled } from "../support/dice.ts";
import { hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

vi.setConfig({ testTimeout: 150_000 });

const silent = new Logger(() => () => undefined);
// The longest poll there is: what starts at all, starts because somebody was woken.
const never = 2 ** 31 - 1;

interface Heard {
  readonly p?: string;
  readonly by?: string;
  readonly quiet?: boolean;
  readonly sweptMs?: number | null;
}

/** What the processes tell each other. */
async function overhear(db: TestDatabase): Promise<Heard[]> {
  const heard: Heard[] = [];
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  onTestFinished(() => client.end());
  client.on("notification", ({ payload }) => void heard.push(JSON.parse(payload ?? "null")));
  await client.query('listen "hathi:fleet"');
  return heard;
}

/** Pools that share nothing but the database. */
async function startPools(count: number, options: object): Promise<{ ran: Set<string>; claims: () => number }> {
  const ran = new Set<string>();
  let claims = 0;
  const runners: Runner[] = [];
  onTestFinished(async () => void (await Promise.all(runners.map((runner) => runner.stop()))));
  for (let n = 0; n < count; n++) {
    const taskList = { job: (_payload: unknown, { job }: { job: { id: string } }) => void ran.add(job.id) };
    const runner = await run({
      maxPoolSize: 2,
      logger: silent,
      noHandleSignals: true,
      concurrency: 2,
      taskList,
      ...options,
    });
    runner.events.on("claim:complete", () => void claims++);
    runners.push(runner);
  }
  return { ran, claims: () => claims };
}

test.for(["directly", "through PgBouncer"])(
  "an idle fleet polls like a few processes, and an added job wakes few of it (%s)",
  async (way, { skip }) => {
    skip(way !== "directly" && !hasPgBouncer, noPgBouncer);
    const db = await freshDatabase();
    const connectionString = way === "directly" ? db.url : await startPgBouncer(db.url);
    const heard = await overhear(db);
    const size = 20;
    const fleet = await startPools(size, { connectionString, listenConnectionString: db.url });
    const utils = await makeWorkerUtils({ pgPool: testPool(db.url, 1), logger: silent });
    onTestFinished(() => utils.release());

    // Until each has told of itself when all were there.
    const before = heard.length;
    await until(() => new Set(heard.slice(before).map(({ p }) => p)).size === size, { what: "all have told" });

    const idleBefore = fleet.claims();
    const heardBefore = heard.length;
    await until(() => heard.length >= heardBefore + 8, { what: "some have polled" });
    // Each poll of one is heard by all, and they do not poll as well: two polls each in this time, if they did.
    expect(fleet.claims() - idleBefore).toBeLessThanOrEqual(heard.length - heardBefore + 4);

    const adds = 15;
    const claimsBefore = fleet.claims();
    const toldBefore = heard.length;
    for (let n = 0; n < adds; n++) {
      const { id } = await utils.addJob("job", {});
      await until(() => fleet.ran.has(id), { what: `job ${id} has run` });
      // Until somebody has told that nothing is left.
      await until(() => heard.length > toldBefore + n, { what: "somebody has told of its scan" });
    }
    // All of them, without a fleet. A busy machine lets some follow before they hear the answer.
    expect((fleet.claims() - claimsBefore) / adds).toBeLessThan(size * 0.75);
  },
);

test.each([1, 2])(
  "a job starts at once although those who are woken are frozen, full or deaf (seed %i)",
  { timeout: 120_000 },
  async (seed) => {
    const db = await freshDatabase();
    const roll = dice(seed);
    const size = 9;
    const workers = await Promise.all(
      Array.from({ length: size }, () =>
        startWorker({ connectionString: db.url, concurrency: 2, pollInterval: never }),
      ),
    );
    const heard = await overhear(db);
    const utils = await makeWorkerUtils({ pgPool: testPool(db.url, 1), logger: silent });
    onTestFinished(() => utils.release());
    const addAndWait = async (): Promise<void> => {
      const { id } = await utils.addJob("work", {});
      // A process that froze in the middle of a claim may have got it; it holds it then until it goes on.
      await until(
        async () => {
          const job = await db.job(id);
          return !job || job.locked_at;
        },
        { what: `job ${id} is claimed` },
      );
    };
    // As long as they do not know each other all claim, and tell of themselves when they do.
    await until(
      async () => {
        await addAndWait();
        return new Set(heard.map(({ p }) => p)).size === size;
      },
      { what: "all have told of themselves" },
    );

    const [full, ...others] = shuffled(workers, roll);
    for (let n = 0; n < 2; n++) await utils.addJob("hold", {});
    await until(() => workers.flatMap((worker) => worker.holds()).length === 2, { what: "two jobs are held" });
    for (let round = 0; round < 6; round++) {
      const frozen = shuffled(others, roll).slice(0, 7);
      for (const worker of frozen) worker.kill("SIGSTOP");
      for (let n = 0; n < 3; n++) await addAndWait();
      // The line on which some of the others listen is cut, and jobs are added before they have another.
      await db.query(
        `select pg_terminate_backend(pid) from (
        select pid from pg_stat_activity where datname = current_database() and query like 'LISTEN%' order by random() limit 4) as victim`,
      );
      for (let n = 0; n < 3; n++) await addAndWait();
      for (const worker of frozen) worker.kill("SIGCONT");
    }
    for (const worker of workers) worker.release();
    expect(full?.isAlive()).toBe(true);
    // Not after the stop: a process that has just gone on may hold a job whose claim was answered while it was frozen. It would return it, to nobody.
    await until(async () => (await db.jobs()).length === 0, { what: "all jobs have run" });
    await Promise.all(workers.map((worker) => worker.stop()));
  },
);

test("of several processes with recovery one at a time looks for dead workers", async () => {
  const db = await freshDatabase();
  const heard = await overhear(db);
  const size = 5;
  await startPools(size, { connectionString: db.url, recovery: { crashGrace: 1_000 } });
  const looks = (): number => heard.filter(({ quiet }) => quiet !== undefined).length;
  await until(() => looks() > 0, { what: "somebody has told of its look" });
  // Each looks twice a second by itself. It takes ten looks of all of them two seconds and a half at the least, not one.
  const [before, began] = [looks(), performance.now()];
  await until(() => looks() >= before + 10, { what: "ten looks" });
  expect(performance.now() - began).toBeGreaterThan(1_500);
});

test("whoever looks for dead workers tells when the last full sweep was, also if another process made it", async () => {
  const db = await freshDatabase();
  const heard = await overhear(db);
  await startPools(3, { connectionString: db.url, recovery: { crashGrace: 1_000 } });
  const sweeps = "select from graphile_worker._hathi_sweeps";
  await until(async () => (await db.query(sweeps)).length > 0, { what: "a sweep", withinMs: 60_000 });
  await db.query("update graphile_worker._hathi_sweeps set swept_at = now() - interval '20 seconds'");
  const tell = (): Set<string | undefined> =>
    new Set(heard.filter(({ sweptMs }) => (sweptMs ?? 0) >= 20_000).map(({ by }) => by));
  await until(() => tell().size === 3, { what: "all have told of that sweep", withinMs: 60_000 });
});
