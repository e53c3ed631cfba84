import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { findOverlaps } from "../support/runs.ts";
import { times } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";
import { logClaims, trespasses, urlOf } from "./claim-log.ts";
import { utilsOf } from "./kit.ts";

/*
 * Cancels at random while workers are killed, swept and forced to let go, an original among them. `claim-log.ts` says what must hold of a job
 * that was cancelled. Of the others each is done. And whatever is unlocked: two runs of a job, or of a queue, never overlap in a process of ours.
 */

const recovery = {
  heartbeatInterval: 200,
  sweepThreshold: 30_000,
  sweepInterval: 500,
  recoveryDelay: 0,
  crashGrace: 0,
};
const steps = times(40);

class Hunt {
  readonly seed = Number(process.env.CANCEL_SEED ?? Date.now() % 1_000_000);
  readonly added: string[] = [];
  readonly workers: WorkerProcess[] = [];
  /** Those that are not originals. */
  readonly ours: WorkerProcess[] = [];
  readonly #random = dice(this.seed);
  readonly #db: TestDatabase;
  readonly #utils: Awaited<ReturnType<typeof utilsOf>>;
  readonly #live: { worker: WorkerProcess; isOriginal: boolean }[] = [];
  #hasCancelledWaiting = false;
  #hasCancelledRunning = false;

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
      connectionString: urlOf(this.#db, `worker ${this.workers.length}`),
      concurrency: 4,
      pollInterval: 200,
      minResetLockedInterval: 100,
      maxResetLockedInterval: 200,
    };
    const worker = isOriginal
      ? await startOriginal(options)
      : await startWorker({ ...options, recovery, useNotifications: this.#random() < 0.7 });
    this.workers.push(worker);
    if (!isOriginal) this.ours.push(worker);
    this.#live.push({ worker, isOriginal });
  }

  /** Some jobs; half of them in queues, some under keys that others have, and may stop. */
  async add(): Promise<void> {
    for (let n = 0; n < 6; n++) {
      const identifier = this.pick(["work", "work", "toil", "fail_first", "hold", "obey"]);
      const queueName = this.pick([null, null, "one", "two"]);
      const jobKey = this.pick([null, null, "key"]);
      const payload = { ms: Math.floor(this.#random() * 120) };
      const spec = { ...(queueName && { queueName }), ...(jobKey && { jobKey, cancelRunning: true }) };
      const { id } = await this.#utils.addJob(identifier, payload, spec);
      if (!this.added.includes(id)) this.added.push(id);
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
    this.#hasCancelledWaiting ||= results.some(({ cancelled }) => cancelled.length > 0);
    this.#hasCancelledRunning ||= results.some(({ stopping }) => stopping.length > 0);
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
    ).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await this.#describeRest()}`);
    });
    for (const { worker } of this.#live) expect(await worker.stop(), `seed ${this.seed}`).toBe(0);
  }

  /** What is left, who has it, and what the living say. */
  async #describeRest(): Promise<string> {
    const rows = [
      ...(await this.#db.query(
        `select id, attempts, max_attempts, run_at, locked_at, locked_by, job_queue_id, last_error, is_available from graphile_worker._private_jobs`,
      )),
      ...(await this.#db.query("select * from graphile_worker._private_job_queues")),
      ...(await this.#db.query("select * from graphile_worker._private_workers")),
      ...(await this.#db.query("select * from graphile_worker._hathi_job_cancellations")),
      ...(await this.#db.query("select clock_timestamp() as now")),
    ];
    const said = this.#live.map(({ worker, isOriginal }) => `${isOriginal ? "original" : "ours"}:\n${worker.output()}`);
    return [...rows.map((row) => JSON.stringify(row)), ...said].join("\n");
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

  /** Both jobs that waited and jobs that a pool had were cancelled. */
  get isVaried(): boolean {
    return this.#hasCancelledWaiting && this.#hasCancelledRunning;
  }
}

test("a cancelled job never runs again, through kills, sweeps, forced unlocks and original workers", async () => {
  const db = await freshDatabase();
  await logClaims(db);
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

  expect(await trespasses(db, hunt.workers), `seed ${hunt.seed}`).toEqual([]);
  for (const worker of hunt.ours) {
    const runs = worker.runs();
    expect([...findOverlaps(runs), ...findOverlaps(runs, ({ id }) => id)], `seed ${hunt.seed}`).toEqual([]);
  }
  const finished = new Set(hunt.workers.flatMap((worker) => worker.finished()));
  const records = await db.query<{ id: string }>(
    "select job_id::text as id from graphile_worker._hathi_job_cancellations",
  );
  const cancelled = new Set(records.map(({ id }) => id));
  const lost = hunt.added.filter((id) => !cancelled.has(id) && !finished.has(id));
  expect(lost, `seed ${hunt.seed}`).toEqual([]);
}, 120_000);
