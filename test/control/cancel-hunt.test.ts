import { expect, test } from "vitest";
import type { DbJob } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { times } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";
import { utilsOf } from "./kit.ts";

/*
 * Cancels at random while workers are killed, swept and forced to let go, an original among them. What must hold of a job that was
 * cancelled: the pool that had it may start it if it had not yet, once; nobody else ever does. And of the others: each is done.
 */

const recovery = {
  heartbeatInterval: 200,
  sweepThreshold: 30_000,
  sweepInterval: 500,
  recoveryDelay: 0,
  crashGrace: 0,
};
const steps = times(40);
/** By the clock that worker processes use. */
const clock = (): number => performance.timeOrigin + performance.now();

interface Cancel {
  readonly at: number;
  /** The pool that had the job; null if it waited. */
  readonly pool: string | null;
  readonly attempt: number;
}

class Hunt {
  readonly seed = Number(process.env.CANCEL_SEED ?? Date.now() % 1_000_000);
  readonly cancels = new Map<string, Cancel>();
  readonly added: string[] = [];
  readonly workers: WorkerProcess[] = [];
  readonly #random = dice(this.seed);
  readonly #db: TestDatabase;
  readonly #utils: Awaited<ReturnType<typeof utilsOf>>;
  readonly #live: { worker: WorkerProcess; isOriginal: boolean }[] = [];

  constructor(db: TestDatabase, utils: Hunt["utils"]) {
    this.#db = db;
    this.#utils = utils;
  }

  get utils(): Awaited<ReturnType<typeof utilsOf>> {
    return this.#utils;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)]!;
  }

  async start(isOriginal: boolean): Promise<void> {
    const options = {
      connectionString: this.#db.url,
      concurrency: 4,
      pollInterval: 200,
      minResetLockedInterval: 100,
      maxResetLockedInterval: 200,
    };
    const worker = isOriginal
      ? await startOriginal(options)
      : await startWorker({ ...options, recovery, useNotifications: this.#random() < 0.7 });
    this.workers.push(worker);
    this.#live.push({ worker, isOriginal });
  }

  /** Some jobs; half of them in queues, some under keys that others have, and may stop. */
  async add(): Promise<void> {
    for (let n = 0; n < 6; n++) {
      const identifier = this.pick(["work", "work", "toil", "fail_first", "hold", "obey"]);
      const queueName = this.pick([null, null, "one", "two"]);
      const jobKey = this.pick([null, null, "key"]);
      const payload = { ms: Math.floor(this.#random() * 120) };
      const before =
        jobKey === null
          ? []
          : await this.#db.query<DbJob>("select * from graphile_worker._private_jobs where key = $1", [jobKey]);
      const spec = { ...(queueName && { queueName }), ...(jobKey && { jobKey, cancelRunning: true }) };
      const { id } = await this.#utils.addJob(identifier, payload, spec);
      if (!this.added.includes(id)) this.added.push(id);
      // Whatever ran under the key is cancelled, unless it ended in between.
      for (const old of before) if (old.id !== id && old.locked_by) await this.#noteReplaced(old);
    }
  }

  async cancel(): Promise<void> {
    const rows = await this.#db.query<{ id: string }>(
      "select id::text from graphile_worker._private_jobs order by random() limit 8",
    );
    const ids = rows.map(({ id }) => id).filter(() => this.#random() < 0.6);
    const results = await Promise.all([
      this.#utils.cancelJobs(ids),
      this.#utils.cancelJobs(ids.toReversed(), { reason: "twice" }),
    ]);
    for (const { cancelled, stopping } of results) for (const job of [...cancelled, ...stopping]) this.#note(job);
  }

  /** A cancel that is taken back does not count. */
  async takeBack(): Promise<void> {
    const client = await this.#db.pool.connect();
    try {
      await client.query("begin");
      const rows = await client.query("select id from graphile_worker._private_jobs limit 3");
      await client.query("select graphile_worker.cancel_jobs($1)", [rows.rows.map(({ id }) => id)]);
      await client.query("rollback");
    } finally {
      client.release();
    }
  }

  async kill(): Promise<void> {
    const index = Math.floor(this.#random() * this.#live.length);
    const [victim] = this.#live.splice(index, 1);
    victim!.worker.kill("SIGKILL");
    if (this.#random() < 0.5) await victim!.worker.ended;
    if (victim!.isOriginal) await this.#ageLocks();
    await this.start(victim!.isOriginal);
  }

  async sweep(): Promise<void> {
    await this.#utils.sweepStaleWorkers({ sweepThreshold: 10_000, recoveryDelay: 0, crashGrace: 0 });
  }

  /** Of anybody, the living too: it is what people do in an emergency. */
  async forceUnlock(): Promise<void> {
    const rows = await this.#db.query<{ id: string }>(
      "select distinct locked_by as id from graphile_worker._private_jobs where locked_by is not null",
    );
    if (rows.length > 0) await this.#utils.forceUnlockWorkers([this.pick(rows).id]);
  }

  async end(): Promise<void> {
    for (const { worker } of this.#live) worker.release();
    await until(
      async () => {
        await this.#ageLocks();
        await this.#db.query("update graphile_worker._private_jobs set run_at = now() where locked_at is null");
        return (await this.#db.jobs()).length === 0;
      },
      { what: `every job is done or cancelled (seed ${this.seed})`, withinMs: 60_000 },
    );
    for (const { worker } of this.#live) expect(await worker.stop(), `seed ${this.seed}`).toBe(0);
  }

  /** The four-hour rule, for what nobody alive holds. */
  async #ageLocks(): Promise<void> {
    const alive = this.#live.flatMap(({ worker }) => worker.starts().map(({ pool }) => pool));
    for (const table of ["_private_jobs", "_private_job_queues"]) {
      await this.#db.query(
        `update graphile_worker.${table} set locked_at = now() - interval '5 hours' where locked_by <> all ($1::text[])
          and locked_at < now() - interval '2 seconds' and locked_by not in (select id from graphile_worker._private_workers)`,
        [alive],
      );
    }
  }

  /** Of two cancels the second one finds no attempts left. */
  #note({ id, locked_by, attempts }: DbJob): void {
    const { at = clock(), pool = locked_by, attempt = attempts } = this.cancels.get(id) ?? {};
    this.cancels.set(id, { at, pool, attempt: Math.min(attempt, attempts) });
  }

  async #noteReplaced(old: DbJob): Promise<void> {
    const query = "select from graphile_worker._hathi_job_cancellations where job_id = $1";
    if ((await this.#db.query(query, [old.id])).length > 0) this.#note(old);
  }

  /** Both jobs that waited and jobs that a pool had were cancelled. */
  get isVaried(): boolean {
    const held = [...this.cancels.values()].filter(({ pool }) => pool !== null);
    return held.length > 0 && this.cancels.size > held.length;
  }

  /** Starts that should not have been. */
  trespassers(): string[] {
    const starts = this.workers.flatMap((worker) => worker.starts());
    return [...this.cancels].flatMap(([id, { at, pool, attempt }]) => {
      const later = starts.filter((start) => start.id === id && start.at > at);
      const held = starts.filter((start) => start.id === id && start.pool === pool && start.attempt === attempt);
      const isFine = later.length === 0 || (later.length === 1 && held.length === 1 && later[0] === held[0]);
      const all = starts.filter((start) => start.id === id);
      return isFine ? [] : [`job ${id}, cancelled at ${at} from ${pool} in attempt ${attempt}: ${JSON.stringify(all)}`];
    });
  }
}

test("a cancelled job never runs again, through kills, sweeps, forced unlocks and original workers", async () => {
  const db = await freshDatabase();
  const hunt = new Hunt(db, await utilsOf(db));
  await Promise.all([hunt.start(false), hunt.start(false), hunt.start(true)]);
  const actions = [
    "add",
    "add",
    "add",
    "cancel",
    "cancel",
    "cancel",
    "takeBack",
    "sweep",
    "forceUnlock",
    "kill",
  ] as const;
  for (let step = 0; step < steps || !hunt.isVaried; step++) {
    await hunt[hunt.pick(actions)]();
  }
  await hunt.end();

  expect(hunt.trespassers(), `seed ${hunt.seed}`).toEqual([]);
  const finished = new Set(hunt.workers.flatMap((worker) => worker.finished()));
  const records = await db.query<{ id: string }>(
    "select job_id::text as id from graphile_worker._hathi_job_cancellations",
  );
  const cancelled = new Set(records.map(({ id }) => id));
  const lost = hunt.added.filter((id) => !cancelled.has(id) && !finished.has(id));
  expect(lost, `seed ${hunt.seed}`).toEqual([]);
}, 120_000);
