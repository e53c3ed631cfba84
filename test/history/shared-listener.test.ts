import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { makeWorkerUtils, type QueueUtils, type WorkerUtilsOptions } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { rememberingLogger } from "../support/log.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { type HeldTask, heldTask, startWorker } from "../worker/kit.ts";

const kept = { keepResult: true };

async function utilsOn(options: WorkerUtilsOptions): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ logger: rememberingLogger().logger, ...options });
  onTestFinished(() => utils.release());
  return utils;
}

/** The sessions that listen for ended jobs. */
async function listeners(db: TestDatabase): Promise<number[]> {
  const rows = await db.query<{ pid: number }>(
    "select pid from pg_stat_activity where query like 'LISTEN \"hathi:ended\"%' and datname = current_database() order by pid",
  );
  return rows.map(({ pid }) => pid);
}

/** A worker whose task returns its payload when it is let go. */
async function startHolding(db: TestDatabase, options: { schema?: string; connectionString?: string } = {}) {
  const held = heldTask();
  const { runner } = await startWorker(
    db,
    { held: (payload, helpers) => held.task(payload, helpers).then(() => payload) },
    { taskOptions: { held: kept }, concurrency: 40, ...options },
  );
  return { held, runner };
}

const release = ({ held }: { held: HeldTask }, id: string): void =>
  held.release(held.started.findIndex((job) => job.id === id));

test.each([
  ["one connection string", false],
  ["one pool", true],
])(
  "utilities of different schemas on %s share one connection that listens, and the last to leave lets it go",
  async (_name, isLent) => {
    const db = await freshDatabase();
    const pgPool = new pg.Pool({ connectionString: db.url });
    pgPool.on("error", () => undefined);
    pgPool.on("connect", (client) => client.on("error", () => undefined));
    onTestFinished(() => pgPool.end());
    const place: WorkerUtilsOptions = isLent ? { pgPool } : { connectionString: db.url };
    const [first, second, third] = [
      await utilsOn(place),
      await utilsOn({ ...place, schema: "elsewhere" }),
      await utilsOn(place),
    ];
    const here = await startHolding(db);
    const there = await startHolding(db, { schema: "elsewhere" });
    const ids = await Promise.all(
      [first, second, third, second, third].map(async (utils, n) => (await utils.addJob("held", n)).id),
    );
    await here.held.begun(3);
    await there.held.begun(2);
    const waits = [first, second, third, second, third].map((utils, n) => {
      const wait = utils.waitForJob(ids[n]!);
      wait.catch(() => undefined);
      return wait;
    });
    await until(async () => (await listeners(db)).length === 1, { what: "one session listens" });
    const [owned] = await listeners(db);

    // Whoever has the connection leaves: another one takes over.
    await first.release();
    await expect(waits[0]).rejects.toThrow("The utilities were released");
    await until(
      async () => {
        const pids = await listeners(db);
        return pids.length === 1 && pids[0] !== owned;
      },
      { what: "another session listens" },
    );
    release(there, ids[1]!);
    release(here, ids[2]!);
    expect(await Promise.all([waits[1], waits[2]])).toEqual([1, 2]);

    // Whoever does not have it leaves: nothing changes.
    const [taken] = await listeners(db);
    await third.release();
    await expect(waits[4]).rejects.toThrow("The utilities were released");
    expect(await listeners(db)).toEqual([taken]);
    release(there, ids[3]!);
    expect(await waits[3]).toBe(3);
    await second.release();
    await until(async () => (await listeners(db)).length === 0, { what: "nobody listens" });
  },
);

test("utilities that come and go while the network fails lose no wait, and end with one connection or none", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const worker = await startHolding(db);
  const roll = dice(23);
  const inUse: QueueUtils[] = [];
  const ended: Promise<unknown>[] = [];
  for (let round = 0; round < 40; round++) {
    if (round % 10 === 5) proxy.cut();
    if (round === 20) proxy.sever();
    if (round === 28) proxy.restore();
    // During the outage they only leave.
    const isAway = round >= 20 && round < 28;
    while (inUse.length < (isAway ? 0 : 6)) inUse.push(await utilsOn({ connectionString: proxy.url }));
    const utils = inUse[Math.floor(roll() * inUse.length)]!;
    const { id } = await worker.runner.addJob("held", round);
    await worker.held.begun(round + 1);
    ended.push(
      utils.waitForJob(id).then(
        (result) => expect(result).toBe(round),
        (error: Error) => expect(error.message).toContain("The utilities were released"),
      ),
    );
    if (inUse.length > 1 && roll() < 0.4) {
      inUse.splice(inUse.indexOf(utils), 1);
      ended.push(utils.release());
    }
    release(worker, id);
  }
  await Promise.all(ended);
  const last = inUse[0]!;
  const { id } = await last.addJob("held", "last");
  const wait = last.waitForJob(id);
  await until(async () => (await listeners(db)).length === 1, { what: "one session listens" });
  await worker.held.begun(41);
  release(worker, id);
  expect(await wait).toBe("last");
  await Promise.all(inUse.map((left) => left.release()));
  await until(async () => (await listeners(db)).length === 0, { what: "nobody listens" });
});

test.skipIf(!hasPgBouncer)("behind a pooler in transaction mode all of them poll, and one line says so", async () => {
  const db = await freshDatabase();
  const connectionString = await startPgBouncer(db.url);
  const { logger, lines } = rememberingLogger();
  const all = await Promise.all([1, 2, 3].map(() => utilsOn({ connectionString, logger })));
  const worker = await startHolding(db);
  const jobs = await Promise.all(all.map((utils, n) => utils.addJob("held", n)));
  const waits = Promise.all(all.map((utils, n) => utils.waitForJob(jobs[n]!.id)));
  const deaf = (): number =>
    lines.filter(({ level, message }) => level === "info" && message.startsWith("Notifications do not arrive")).length;
  await until(() => deaf() > 0, { what: "they are deaf" });
  await worker.held.begun(3);
  worker.held.releaseAll();
  expect(await waits).toEqual([0, 1, 2]);
  expect(deaf()).toBe(1);
});
