import { expect } from "vitest";
import { migrate } from "../../src/db/migrate.ts";
import { readMigration, shippedMigrations } from "../../src/db/plan-migration.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { startWorker, type WorkerProcess } from "../support/worker-process.ts";

/** A worker of the version that is upgraded from. */
export interface OldWorker {
  /** The jobs that it has run. */
  runs(): string[];
  /** Everything that went wrong. */
  failures(): string[];
  stop(): Promise<unknown>;
}

/** Events that tell of something wrong. */
const troubles = ["worker:getJob:error", "worker:fatalError", "pool:fatalError", "pool:listen:error", "job:error"];

export const workerOptions = (database: TestDatabase) => ({
  connectionString: database.url,
  concurrency: 3,
  pollInterval: 200,
  tells: troubles,
});

export function asOldWorker(worker: WorkerProcess): OldWorker {
  return {
    runs: () => worker.runs().map(({ id }) => id),
    failures: () => [...worker.told(), ...worker.logged().filter((line) => /^(warning|error)/.test(line))],
    stop: async () => expect(await worker.stop()).toBe(0),
  };
}

/** Stands for the next release: a table, a function that is replaced, and an index on a table that has rows. */
const next = readMigration(
  "000999-next.sql",
  `create table graphile_worker._hathi_next (id integer primary key);
create index _hathi_next_jobs on graphile_worker._private_jobs using btree (created_at);
create or replace function graphile_worker._hathi_next() returns integer language sql as $hathi$ select 1 $hathi$;
`,
);

/**
 * Upgrades the schema while workers of the old version run and producers add jobs, lets ours join, and expects that nothing
 * fails, nothing is lost and nothing runs twice. A producer does not wait more than a second for a lock.
 */
export async function rehearse(
  database: TestDatabase,
  startOld: () => Promise<OldWorker>,
  { toNext = false }: { toNext?: boolean } = {},
): Promise<void> {
  const old = [await startOld(), await startOld()];
  const producers = [startProducer(database), startProducer(database)];
  const ran = (): string[] => old.flatMap((worker) => worker.runs());
  await until(() => ran().length >= 20, { what: "the old workers have run 20 jobs" });

  await upgrade(database, toNext);
  const before = ran().length;
  await until(() => ran().length >= before + 20, { what: "the old workers have run 20 more jobs" });
  // Ours would warn of a schema from the future.
  const ours = toNext ? [] : [asOldWorker(await startWorker(workerOptions(database)))];
  await until(() => ours.every((worker) => worker.runs().length >= 20), { what: "ours has run 20 jobs" });

  const added = (await Promise.all(producers.map((producer) => producer.stop()))).flat();
  // On a busy machine the producers are far ahead of the old workers, and a queue runs one job at a time.
  await until(async () => (await database.jobs()).length === 0, { what: "every job is done", withinMs: 120_000 });
  for (const worker of [...old, ...ours]) await worker.stop();
  expect([...old, ...ours].flatMap((worker) => worker.failures())).toEqual([]);
  expect([...old, ...ours].flatMap((worker) => worker.runs()).sort()).toEqual(added.sort());
}

async function upgrade(database: TestDatabase, toNext: boolean): Promise<void> {
  const { logger, lines } = rememberingLogger();
  const client = await testPool(database.url, 1).connect();
  const migrations = [...shippedMigrations(), ...(toNext ? [next] : [])];
  try {
    await migrate({ client, schema: database.schema, logger, migrations });
  } finally {
    client.release();
  }
  expect(lines.filter(({ level }) => level !== "info")).toEqual([]);
  expect(await database.query("select id from graphile_worker._hathi_migrations order by id")).toEqual(
    migrations.map(({ id }) => ({ id })),
  );
}

/** Adds jobs in every way that SQL has, until it is stopped; gives their ids. */
function startProducer(database: TestDatabase): { stop(): Promise<string[]> } {
  const pool = testPool(database.url, 1, { options: "-c lock_timeout=1s" });
  let isOver = false;
  const producing = (async () => {
    const ids: string[] = [];
    for (let n = 0; !isOver; n++) {
      const { rows } = await pool.query<{ id: string }>(ways[n % ways.length]!);
      ids.push(...rows.map(({ id }) => id));
    }
    return ids;
  })();
  producing.catch(() => undefined);
  return {
    stop: () => {
      isOver = true;
      return producing;
    },
  };
}

const ways = [
  "select id from graphile_worker.add_job('work')",
  `select id from graphile_worker.add_job('work', '{"ms":2}', queue_name => 'queue ' || floor(random() * 5))`,
  "select id from graphile_worker.add_job('work', '[1]', job_key => gen_random_uuid()::text, max_attempts => 3, priority => 1)",
  `select id from graphile_worker.add_jobs(array[
    ('work', '{}', null, null, null, null, null, null)::graphile_worker.job_spec,
    ('work', '{}', 'queue 7', now(), 5, gen_random_uuid()::text, 2::smallint, array['flag'])::graphile_worker.job_spec])`,
];
