import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { configuration, hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { until } from "../support/wait.ts";
import { Arena, type ChaosWorker, nothing, recovery } from "./kit.ts";

/*
 * A fleet of the size that the figures in `docs/scaling.md` are for, a few minutes each way:
 *
 *   HATHI_FLEET=40 npx vitest run test/chaos/fleet-under-blows.test.ts
 */
const size = Number(process.env.HATHI_FLEET ?? 6);
const isLarge = size > 6;
const rounds = isLarge ? 6 : 1;
/** Of the fleet, in each round and of each kind. */
const victims = Math.ceil(size / 10);
/** Forty processes on two cores are slower. */
const patient = {
  ...recovery,
  heartbeatInterval: 1_000,
  sweepInterval: 1_000,
  sweepThreshold: 10_000,
  crashGrace: 3_000,
};

const manyConnections: typeof configuration = (target, port) =>
  configuration(target, port).replace("default_pool_size = 4", "default_pool_size = 20");

test.for(isLarge ? ["directly", "through PgBouncer"] : ["directly"])(
  `${size} processes of 10 slots are killed, frozen and cut off (%s): no job is lost or doubled, and cron and sweeps have one winner`,
  { timeout: 600_000 },
  async (way, { skip }) => {
    skip(way !== "directly" && !hasPgBouncer, noPgBouncer);
    const db = await freshDatabase();
    const arena = new Arena(db.url, Number(process.env.HATHI_SEED ?? 21));
    const target = way === "directly" ? db.url : await startPgBouncer(db.url, manyConnections);
    const options = {
      connectionString: `${target}?application_name=fleet`,
      concurrency: 10,
      maxPoolSize: 3,
      recovery: isLarge ? patient : recovery,
      crontab: "* * * * * work ?id=tick&fill=10m",
      ...(way !== "directly" && {
        listenConnectionString: `${db.url}?application_name=fleet`,
        noPreparedStatements: true,
      }),
    };
    await logTicks(db);
    const all: ChaosWorker[] = [];
    const start = async (): Promise<ChaosWorker> => {
      const worker = await arena.start(options);
      all.push(worker);
      return worker;
    };
    const fleet = await Promise.all(Array.from({ length: size }, start));
    const takeAny = (): ChaosWorker[] =>
      Array.from({ length: victims }, () => fleet.splice(arena.any(fleet.length), 1)[0]!);
    /** Until one of the others has taken it for dead; again, if one has before. */
    const death = ({ pid }: ChaosWorker): (() => Promise<unknown>) => {
      const count = (): number => all.flatMap(deathsSeenBy).filter((each) => each.pid === pid).length;
      const before = count();
      return () => until(() => count() > before, { what: `${pid} is taken for dead`, withinMs: 60_000 });
    };
    const blows = { jobs: 0, killed: 0, frozen: 0, terminated: 0 };
    for (let round = 0; round < rounds; round++) {
      await until(() => areKnown(db, fleet), { what: "all are known as alive", withinMs: 60_000 });
      blows.jobs += (await arena.addMixture(size * 25)).length;
      const frozen = takeAny().map((worker) => ({ worker, isDead: death(worker), thaw: worker.freeze() }));
      const killed = takeAny().map((worker) => ({ worker, isDead: death(worker) }));
      await Promise.all(killed.map(({ worker }) => worker.kill()));
      // Lines to listen on and connections that claim and settle, by chance.
      const cut = await db.query(
        `select pg_terminate_backend(pid) from (
           select pid from pg_stat_activity where datname = current_database() and application_name = 'fleet'
           order by md5(pid::text || $1) limit $2) as victim`,
        [String(arena.any(1_000)), victims * 2],
      );
      blows.terminated += cut.length;
      fleet.push(...(await Promise.all(killed.map(start))));
      for (const { isDead } of [...frozen, ...killed]) await isDead();
      for (const { worker, thaw } of frozen) {
        thaw();
        fleet.push(worker);
      }
      blows.killed += killed.length;
      blows.frozen += frozen.length;
    }
    const ticks = await db.query<{ id: string; at: string }>("select id, at from ticks order by at");
    for (const { id } of ticks) arena.want(id);
    expect(await arena.verdict(180_000)).toEqual(nothing);
    // Each minute once, and none left out.
    const minutes = ticks.map(({ at }) => Date.parse(at) / 60_000);
    expect(minutes).toEqual(minutes.map((_, nth) => minutes[0]! + nth));
    expect(minutes.length).toBeGreaterThanOrEqual(10);
    // Each death was found by one process, and by no other.
    const deaths = all.flatMap(deathsSeenBy).map(({ id }) => id);
    expect(deaths.toSorted()).toEqual([...new Set(deaths)].toSorted());
    console.log(`${size} processes, ${way}:`, { ...blows, ticks: ticks.length, deaths: deaths.length });
  },
);

/** Remembers what cron has added, although its jobs are gone when they are done. All find it ten minutes late. */
async function logTicks(db: TestDatabase): Promise<void> {
  await db.query("create table ticks (id bigint not null, at text not null)");
  await db.query(`
    create function log_tick() returns trigger language plpgsql as $$
    begin
      insert into public.ticks values (new.id, new.payload -> '_cron' ->> 'ts');
      return null;
    end $$`);
  await db.query(`
    create trigger log_tick after insert on graphile_worker._private_jobs
    for each row when (new.payload -> '_cron' is not null) execute function log_tick()`);
  await db.query(
    "insert into graphile_worker._private_known_crontabs (identifier, known_since) values ('tick', now() - interval '1 day')",
  );
}

/** One that has not sent a heartbeat yet would not be missed. */
async function areKnown(db: TestDatabase, fleet: readonly ChaosWorker[]): Promise<boolean> {
  const rows = await db.query<{ pid: number }>(
    "select (metadata ->> 'pid')::integer as pid from graphile_worker._private_workers",
  );
  const known = new Set(rows.map(({ pid }) => pid));
  return fleet.every(({ pid }) => known.has(pid));
}

/** The workers that this one has found dead: under which id, and in which process. */
function deathsSeenBy(worker: ChaosWorker): { readonly id: string; readonly pid: number }[] {
  const found = worker.output().matchAll(/Worker (\S+) \(process (\d+).*(?:sent no heartbeat|lost its connection)/g);
  return [...found].map(([, id, pid]) => ({ id: id!, pid: Number(pid) }));
}
