import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import type { TaskList } from "../../src/task.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice, shuffled } from "../support/dice.ts";
import { seeds } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { type StartedWorker, startWorker } from "../worker/kit.ts";

// Much work for one test, and the machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

/*
 * Workers that come and go while applications hold rows and queues, add, remove and replace keyed jobs behind slow ones, and while
 * backends are terminated at any moment. Nothing is lost, nothing that was removed or replaced while it waited runs, queues stay serial, and no
 * application is the victim of a deadlock.
 */

interface Run {
  readonly id: string;
  readonly version: string;
  readonly queue: number | null;
}

interface World {
  readonly runs: Run[];
  /** The most that were inside of one queue at the same time. */
  worst: number;
  readonly taskList: TaskList;
}

function makeWorld(): World {
  const inside = new Map<number, number>();
  const world: World = {
    runs: [],
    worst: 0,
    taskList: {
      t: async (payload, { job }) => {
        const { version, ms } = payload as { version: string; ms: number };
        const queue = job.job_queue_id;
        world.runs.push({ id: job.id, version, queue });
        if (queue !== null) {
          inside.set(queue, (inside.get(queue) ?? 0) + 1);
          world.worst = Math.max(world.worst, inside.get(queue)!);
        }
        if (ms > 0) await sleep(ms);
        if (queue !== null) inside.set(queue, inside.get(queue)! - 1);
      },
    },
  };
  return world;
}

const options = [
  { concurrency: 4 },
  { concurrency: 1 },
  { concurrency: 8, preset: { worker: { completeJobBatchDelay: 3, failJobBatchDelay: 3 } } },
  { concurrency: 3, preset: { worker: { localQueue: { size: 20, ttl: 100 } } } },
];

const terminateOne = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and application_name = 'adversary-worker'
  order by md5(pid || $1) limit 1`;

async function connect(db: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: db.url, options: "-c deadlock_timeout=20ms" });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test.each(seeds(2))(
  "workers, applications and terminated backends at once: nothing is lost, doubled, overtaken or brought back (%i)",
  async (seed) => {
    const db = await freshDatabase();
    // Two transactions that each make a queue which the other uses next would be in each other's way, whatever we do.
    await db.query(
      "insert into graphile_worker._private_job_queues (queue_name) select 'queue ' || n from generate_series(0, 3) as n",
    );
    const roll = dice(seed);
    const any = (count: number): number => Math.floor(roll() * count);
    const world = makeWorld();
    const workerUrl = `${db.url}?application_name=adversary-worker`;
    let starting = 0;
    const start = (): Promise<StartedWorker> => {
      starting++;
      return startWorker(db, world.taskList, {
        ...options[any(options.length)]!,
        connectionString: workerUrl,
        pollInterval: 300,
      }).finally(() => starting--);
    };
    let workers: StartedWorker[] = await Promise.all([start(), start(), start()]);

    /** Versions that must run once, and those that were removed or replaced while they waited. */
    const wanted = new Set<string>();
    const gone = new Set<string>();
    const unsure = new Set<string>();
    let versions = 0;
    const keys = Array.from({ length: 12 }, (_, n) => `key ${n}`);
    const versionByKey = new Map<string, string>();
    const failures: unknown[] = [];

    const keyed = async (client: pg.Client, key: string): Promise<void> => {
      const version = `v${versions++}`;
      const { rows } = await client.query(
        `select (job).revision, (job).id from graphile_worker.add_job('t', $1::json, queue_name => $2, job_key => $3) as job`,
        [JSON.stringify({ version, ms: any(4) === 0 ? 150 : 0 }), any(2) ? `queue ${any(4)}` : null, key],
      );
      const before = versionByKey.get(key);
      if (before !== undefined) {
        wanted.delete(before);
        // A new row means that the one before is done or was locked: then it has started, or never will.
        (rows[0].revision > 0 ? gone : unsure).add(before);
      }
      wanted.add(version);
      versionByKey.set(key, version);
    };
    const remove = async (client: pg.Client, key: string): Promise<void> => {
      const { rows } = await client.query(
        "select (job).id, (job).locked_at from graphile_worker.remove_job($1) as job where (job).id is not null",
        [key],
      );
      const before = versionByKey.get(key);
      if (rows.length === 0 || before === undefined) return;
      wanted.delete(before);
      versionByKey.delete(key);
      // One that was locked may have been running.
      if (rows[0].locked_at === null) gone.add(before);
      else unsure.add(before);
    };
    const plain = async (client: pg.Client): Promise<void> => {
      const count = 1 + any(40);
      const list = Array.from({ length: count }, () => `v${versions++}`);
      const queue = any(3) ? null : `queue ${any(4)}`;
      await client.query(
        `select graphile_worker.add_job('t', json_build_object('version', version, 'ms', case when $2 = 0 then 30 else 0 end),
           queue_name => $3) from unnest($1::text[]) as version`,
        [list, any(6), queue],
      );
      for (const version of list) wanted.add(version);
    };
    // Each application owns some keys, so that it knows what became of them.
    const application = async (nth: number, client: pg.Client, isOver: () => boolean): Promise<void> => {
      const mine = keys.filter((_, index) => index % 3 === nth);
      while (!isOver()) {
        try {
          await client.query("begin");
          for (const key of shuffled(mine, roll).slice(0, 1 + any(3))) await (any(3) ? keyed : remove)(client, key);
          if (any(2)) await plain(client);
          if (any(3) === 0)
            await client.query("select from graphile_worker._private_jobs where id % 7 = $1 for update skip locked", [
              any(7),
            ]);
          if (any(3) === 0)
            await client.query(
              "select from graphile_worker._private_job_queues where id % 3 = $1 for update skip locked",
              [any(3)],
            );
          await sleep(any(3) === 0 ? 100 + any(200) : any(10));
          await client.query("commit");
        } catch (error) {
          failures.push(error);
          await client.query("rollback").catch(() => undefined);
        }
      }
    };
    let isOver = false;
    const killer = await connect(db);
    const killing = (async () => {
      for (let n = 0; !isOver; n++) {
        await sleep(40 + any(120));
        // A worker that cannot start says so and does not start.
        if (starting === 0) await killer.query(terminateOne, [String(n)]);
      }
    })();
    const applications = [0, 1, 2].map(async (nth) => application(nth, await connect(db), () => isOver));
    for (let turn = 0; turn < 5; turn++) {
      await sleep(300 + any(400));
      const index = any(workers.length);
      const leaving = workers[index]!.runner.stop().catch((error: unknown) => failures.push(error));
      workers = workers.with(index, await start());
      if (any(2)) await leaving;
    }
    isOver = true;
    await Promise.all([killing, ...applications]);
    await until(
      async () =>
        (await db.jobs()).every(
          ({ attempts, max_attempts, locked_by }) => locked_by === null && attempts >= max_attempts,
        ),
      {
        what: "nothing waits or runs any more",
        withinMs: 60_000,
      },
    );
    for (const { runner } of workers) await runner.stop();

    expect(failures).toEqual([]);
    const counts = new Map<string, number>();
    for (const { version } of world.runs) counts.set(version, (counts.get(version) ?? 0) + 1);
    expect(
      [...wanted].filter((version) => counts.get(version) !== 1).map((version) => [version, counts.get(version)]),
    ).toEqual([]);
    expect([...gone].filter((version) => counts.has(version))).toEqual([]);
    expect([...unsure].filter((version) => counts.get(version)! > 1)).toEqual([]);
    expect(world.worst).toBeLessThanOrEqual(1);
    expect(await db.query("select from graphile_worker._private_job_queues where locked_by is not null")).toEqual([]);
  },
  180_000,
);
