import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { recoveryDefaults } from "../../src/config/recovery-options.ts";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { type ClaimedRow, claimJobsAlive } from "../../src/db/statements/claim.ts";
import { registerWorker } from "../../src/db/statements/heartbeat.ts";
import { completeJobs, returnJobs } from "../../src/db/statements/settle.ts";
import { adoptSuspect } from "../../src/db/statements/sweep.ts";
import { sweep } from "../../src/recovery/sweep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { seeds } from "../support/times.ts";
import { addJob } from "./kit.ts";

/*
 * Workers that claim, adopt, start, settle, return, die and wake up in any order, with sweeps in between, while applications hold rows
 * and queues, cancel jobs and pause a queue. Every step is one statement that a worker sends. No job ends twice, nothing in a queue overtakes or runs beside
 * another, whoever was buried claims nothing, and in the end nothing is left or locked.
 */

// Some hundred statements, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

interface HeldJob {
  readonly id: string;
  /** Null also when it has ended and only its row is left to be written, because an application holds it: its queue is free by then. */
  queue: number | null;
  isRunning: boolean;
}

interface Pool {
  readonly id: string;
  life: "alive" | "killed" | "frozen";
  held: HeldJob[];
  /** Queues whose row was held by an application when they were to be released, with the jobs that had ended. */
  unreleased: { queue: number; ended: string[] }[];
}

const slots = 2;
const taskIds = [1];
const jobRows = ["_private_jobs", "update"] as const;
const queueRows = ["_private_job_queues", "no key update"] as const;

class World {
  readonly log: string[] = [];
  readonly #db: TestDatabase;
  readonly #database: Database;
  readonly #roll: () => number;
  readonly #pools: Pool[] = [];
  readonly #done = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #applications: pg.Client[] = [];

  constructor(db: TestDatabase, seed: number) {
    this.#db = db;
    this.#database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
    this.#roll = dice(seed);
  }

  async open(): Promise<void> {
    for (let n = 0; n < 2; n++) {
      const client = new pg.Client({ connectionString: this.#db.url });
      await client.connect();
      onTestFinished(() => client.end());
      this.#applications.push(client);
    }
    await this.add();
    for (let n = 0; n < 3; n++) await this.join();
  }

  any(count: number): number {
    return Math.floor(this.#roll() * count);
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[this.any(list.length)];
  }

  #alive(): Pool[] {
    return this.#pools.filter(({ life }) => life === "alive");
  }

  async add(): Promise<void> {
    const queue = this.#pick(["a", "b", null]) ?? null;
    this.log.push(`add ${await addJob(this.#db, "task", {}, { queue })} to ${queue}`);
  }

  async join(): Promise<Pool> {
    const pool: Pool = { id: `pool-${this.#pools.length}`, life: "alive", held: [], unreleased: [] };
    this.#pools.push(pool);
    const metadata = { concurrency: slots, migration: 6, tasks: ["task"] };
    await this.#database.run(registerWorker, { id: pool.id, metadata });
    return pool;
  }

  async claim(pool = this.#pick(this.#alive())): Promise<void> {
    if (!pool || pool.held.length > 3) return;
    const [row] = await this.#claimAs(pool.id);
    const jobs = JSON.parse(row!.jobs ?? "[]") as ClaimedRow[];
    if (jobs.length > 0) this.log.push(`${pool.id} claims ${jobs.map(([id]) => id).join()}`);
    for (const [id, queue] of jobs) pool.held.push({ id, queue, isRunning: false });
    await this.start(pool);
  }

  #claimAs(poolId: string) {
    return this.#database.run(claimJobsAlive, {
      poolId,
      taskIds,
      wanted: 1 + this.any(4),
      perQueue: 3,
      forbidden: null,
      accepted: null,
      clock: null,
      marks: [],
      withQueues: true,
      relaxed: true,
    });
  }

  async adopt(pool = this.#pick(this.#alive())): Promise<void> {
    if (!pool) return;
    const params = { poolId: pool.id, taskIds, forbidden: null, accepted: null, clock: null, workerNames: [] };
    const [row] = await this.#database.run(adoptSuspect, params);
    if (!row) return;
    this.log.push(`${pool.id} adopts ${row.id}`);
    pool.held.push({ id: row.id, queue: row.job_queue_id, isRunning: false });
    await this.start(pool);
  }

  /** In the order of the claims, and of each queue one at a time. */
  async start(pool: Pool): Promise<void> {
    for (const [nth, job] of pool.held.entries()) {
      if (pool.held.filter(({ isRunning }) => isRunning).length >= slots) return;
      const isFirst = pool.held.findIndex(({ queue }) => queue === job.queue) === nth;
      if (job.isRunning || (job.queue !== null && !isFirst)) continue;
      job.isRunning = true;
      this.log.push(`${pool.id} starts ${job.id}`);
      if (job.queue === null) continue;
      const rows = await this.#db.query<{ id: string }>(
        `select ahead.id from graphile_worker._private_jobs as job, graphile_worker._private_jobs as ahead
         where job.id = $1 and ahead.job_queue_id = job.job_queue_id
           and (ahead.priority, ahead.run_at, ahead.id) < (job.priority, job.run_at, job.id) and ahead.attempts < ahead.max_attempts`,
        [job.id],
      );
      const ahead = rows.filter(({ id }) => !this.#ended.has(id));
      expect(ahead, `${job.id} overtakes\n${this.log.join("\n")}`).toEqual([]);
      const beside = this.#alive().flatMap((other) => (other === pool ? [] : other.held));
      const rivals = beside.filter(({ queue, isRunning }) => queue === job.queue && isRunning);
      expect(rivals, `${job.id} runs beside others\n${this.log.join("\n")}`).toEqual([]);
    }
  }

  /** One whose process was frozen wakes up, and settles what it was running. */
  async settle(pool = this.#pick(this.#pools.filter(({ life }) => life !== "killed"))): Promise<void> {
    const job = this.#pick(pool?.held.filter(({ isRunning }) => isRunning) ?? []);
    if (!pool || !job) return;
    const isLast = pool.held.every((other) => other === job || other.queue !== job.queue);
    const release = job.queue !== null && isLast ? { queueIds: [job.queue], endedIds: [job.id] } : { queueIds: null };
    const [row] = await this.#database.run(completeJobs, { poolId: pool.id, jobIds: [job.id], ...release });
    if (release.queueIds && row?.held_queues) pool.unreleased.push({ queue: job.queue!, ended: [job.id] });
    if (row?.held) {
      this.#ended.add(job.id);
      job.queue = null;
      this.log.push(`${pool.id} is to write ${job.id} later`);
      return;
    }
    pool.held = pool.held.filter((other) => other !== job);
    const isLost = row?.lost != null;
    this.log.push(`${pool.id} ${isLost ? "has lost" : "completes"} ${job.id}`);
    if (isLost) {
      expect(pool.life, `${job.id} is lost\n${this.log.join("\n")}`).toBe("frozen");
    } else {
      expect(this.#done, `${job.id} ends twice`).not.toContain(job.id);
      this.#done.add(job.id);
    }
    if (pool.life === "alive") await this.start(pool);
  }

  async releaseQueue(pool = this.#pick(this.#pools.filter(({ life }) => life !== "killed"))): Promise<void> {
    const { queue, ended } = pool?.unreleased[0] ?? {};
    if (!pool || queue === undefined || !ended) return;
    const release = { queueIds: [queue], endedIds: ended };
    const [row] = await this.#database.run(completeJobs, { poolId: pool.id, jobIds: [], ...release });
    if (!row?.held_queues) pool.unreleased.shift();
  }

  /** Returns what has not started. */
  async giveUp(): Promise<void> {
    const pool = this.#pick(this.#alive());
    const waiting = pool?.held.filter(({ isRunning }) => !isRunning) ?? [];
    if (!pool || waiting.length === 0) return;
    const rest = pool.held.filter(({ isRunning }) => isRunning);
    const queues = [...new Set(waiting.map(({ queue }) => queue))].filter(
      (queue): queue is number => queue !== null && rest.every((job) => job.queue !== queue),
    );
    const how = {
      attempts: null,
      hasStarted: false,
      delayMs: null,
      reason: null,
      queueIds: queues.length > 0 ? queues : null,
    };
    const jobIds = waiting.map(({ id }) => id);
    const [row] = await this.#database.run(returnJobs, { poolId: pool.id, jobIds, ...how });
    for (const queue of row?.held_queues ?? []) pool.unreleased.push({ queue, ended: jobIds });
    this.log.push(
      `${pool.id} returns ${jobIds.join()}, held are ${row?.held?.join()} and queues ${row?.held_queues?.join()}`,
    );
    const held = row?.held?.map(String) ?? [];
    pool.held = [...rest, ...waiting.filter(({ id }) => held.includes(id))];
  }

  async die(): Promise<void> {
    const pool = this.#pick(this.#alive());
    if (!pool || this.#alive().length < 2) return;
    if (this.any(2)) {
      pool.life = "killed";
      await this.#db.query(
        "insert into graphile_worker._hathi_worker_lines values ($1, 4711, now() - interval '1 day')",
        [pool.id],
      );
    } else {
      pool.life = "frozen";
      await this.#db.query(
        "update graphile_worker._private_workers set last_heartbeat_at = now() - interval '1 day' where id = $1",
        [pool.id],
      );
    }
    this.log.push(`${pool.id} is ${pool.life}`);
    await this.join();
  }

  async sweep(): Promise<void> {
    const skips = this.any(4) === 0;
    const jobRecovery = async () => (this.any(2) ? ("skip" as const) : ("default" as const));
    const { workerIds, jobs } = await sweep(this.#database, {
      sweeperId: "sweeper",
      settings: { ...recoveryDefaults, maxCrashes: 1_000 },
      withOrphans: this.any(2) === 0,
      witnessedMs: () => null,
      dryRun: false,
      hooks: skips ? { jobRecovery } : {},
      keepRules: { of: () => undefined, redact: [], opening: () => undefined },
    });
    if (workerIds.length > 0)
      this.log.push(`sweep of ${workerIds.join()}: ${jobs.map(({ id, outcome }) => `${outcome} ${id}`).join()}`);
    for (const id of workerIds) expect(await this.#claimAs(id), `${id} is buried`).toEqual([]);
  }

  async letTimePass(): Promise<void> {
    await this.#db.query("update graphile_worker._hathi_job_crashes set release_at = now()");
    if (this.any(2)) await this.#db.query("select graphile_worker._hathi_tend_parked()");
  }

  /** An application takes a job or a queue, or lets go of what it has. */
  async meddle(): Promise<void> {
    const client = this.#pick(this.#applications)!;
    await client.query("rollback");
    if (this.any(3) === 0) return;
    await client.query("begin");
    // A queue's row is held like by an update: adding to the queue need not wait.
    const [table, how] = this.#pick([jobRows, jobRows, queueRows])!;
    const { rows } = await client.query<{ id: string }>(
      `select id from graphile_worker.${table} order by md5(id || $1) limit 1 for ${how} skip locked`,
      [String(this.any(1_000))],
    );
    this.log.push(`an application holds ${rows[0]?.id} of ${table}`);
  }

  async cancel(): Promise<void> {
    const id = this.#pick(await this.#db.query<{ id: string }>("select id from graphile_worker._private_jobs"))?.id;
    if (!id) return;
    // Like other calls of an application, it may have to wait for another one.
    for (const client of this.#applications) await client.query("rollback");
    await this.#db.query("select from graphile_worker.cancel_jobs(array[$1::bigint])", [id]);
    this.log.push(`cancel ${id}`);
  }

  async pause(): Promise<void> {
    const call = this.any(2) ? "pause_work" : "resume_work";
    for (const client of this.#applications) await client.query("rollback");
    await this.#db.query(`select from graphile_worker.${call}('queue', 'a')`);
    this.log.push(call);
  }

  /** Lets one more worker do what is left. */
  async finish(): Promise<void> {
    for (const client of this.#applications) await client.query("rollback");
    await this.#db.query("select from graphile_worker.resume_work('queue', 'a')");
    for (const pool of this.#alive()) {
      pool.life = "frozen";
      await this.#db.query(
        "update graphile_worker._private_workers set last_heartbeat_at = now() - interval '1 day' where id = $1",
        [pool.id],
      );
    }
    const heir = await this.join();
    for (let round = 0; round < 60 && (await this.#stuck()).length > 0; round++) {
      await this.sweep();
      await this.letTimePass();
      await this.adopt(heir);
      await this.claim(heir);
      while (heir.held.some(({ isRunning }) => isRunning)) await this.settle(heir);
    }
    expect(await this.#stuck(), this.log.join("\n")).toEqual([]);
  }

  #stuck(): Promise<unknown[]> {
    return this.#db.query(`
      select 'job ' || id || ' is locked by ' || coalesce(locked_by, 'none') as what
      from graphile_worker._private_jobs where attempts < max_attempts or locked_at is not null
      union all
      select 'queue ' || queue_name || ' is locked by ' || locked_by from graphile_worker._private_job_queues where locked_at is not null`);
  }
}

test.each(seeds(4))("claims, adoptions, settles, deaths, sweeps and applications in any order (%i)", async (seed) => {
  const world = new World(await freshDatabase(), seed);
  await world.open();
  const steps = [
    ...[() => world.add(), () => world.add(), () => world.claim(), () => world.claim(), () => world.adopt()],
    ...[() => world.settle(), () => world.settle(), () => world.releaseQueue(), () => world.giveUp()],
    ...[() => world.die(), () => world.sweep(), () => world.letTimePass(), () => world.meddle(), () => world.meddle()],
    () => world.cancel(),
  ];
  for (let step = 0; step < 250; step++) await steps[world.any(steps.length)]!();
  await world.finish();
});
