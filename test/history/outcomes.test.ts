import type { PoolClient } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { forward } from "../../src/forward/index.ts";
import { CancelJobError, makeWorkerUtils, SnoozeError, type TaskList, UnrecoverableError } from "../../src/index.ts";
import type { TaskHelpers } from "../../src/task.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

/*
 * Jobs that end in every way there is, some of them cancelled from outside at any moment, while backends are terminated all the time. What must hold:
 * every run has exactly one entry in history, that of its job and attempt, with an outcome that fits what the task did; no entry is without its run, and the groups count each
 * failure once. A cancelled job never starts again.
 */

vi.setConfig({ testTimeout: 120_000 });

const failed = ["failed", "permanentlyFailed"];
const either = ["succeeded", ...failed];
/** What a task does in one run, and how that may end. On a busy machine, what takes its time may time out, and what overruns may still return first. */
const acts = {
  succeed: ["succeeded"],
  fail: failed,
  failElsewhere: failed,
  snooze: ["snoozed"],
  giveUp: ["permanentlyFailed"],
  cancelItself: ["cancelled"],
  timeOut: failed,
  overrun: either,
  completeIn: either,
  failBatch: failed,
  wait: either,
} as const;
type Act = keyof typeof acts;

interface Run {
  readonly id: string;
  readonly attempt: number;
  readonly act: string;
  readonly mayEnd: readonly string[];
}

const ignore = (): void => undefined;

async function transact(db: TestDatabase, work: (tx: PoolClient) => Promise<unknown>): Promise<void> {
  const client = await db.pool.connect();
  if (!client.listeners("error").includes(ignore)) client.on("error", ignore);
  let failure: Error | undefined;
  try {
    await client.query("begin");
    await work(client);
    await client.query("commit");
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

const rest = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

class Stage {
  readonly runs: Run[] = [];
  readonly #runsOf = new Map<string, number>();
  readonly #db: TestDatabase;

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  readonly tasks: TaskList = {
    act: (payload, helpers) => this.#act((payload as { acts: Act[] }).acts, helpers),
    // Each run fails the items that are greater than its number.
    batch: (payload, helpers) => {
      const items = payload as number[];
      const nth = this.#next(helpers);
      const isFailure = items.some((item) => item > nth);
      this.#note(helpers, "batch", isFailure ? failed : ["succeeded"]);
      return items.map((item) => (item > nth ? Promise.reject(new Error(`item ${item}`)) : Promise.resolve()));
    },
  };

  #next({ job }: Pick<TaskHelpers, "job">): number {
    const nth = this.#runsOf.get(job.id) ?? 0;
    this.#runsOf.set(job.id, nth + 1);
    return nth;
  }

  #note({ job }: Pick<TaskHelpers, "job">, act: string, mayEnd: readonly string[]): void {
    this.runs.push({ id: job.id, attempt: job.attempts, act, mayEnd });
  }

  async #act(plan: readonly Act[], helpers: TaskHelpers): Promise<unknown> {
    const act = plan[this.#next(helpers)] ?? "succeed";
    this.#note(helpers, act, acts[act]);
    switch (act) {
      case "succeed":
        return { fine: true };
      case "fail":
        throw new TypeError(`failed ${helpers.job.id}`);
      case "failElsewhere":
        throw new RangeError(`failed ${helpers.job.id}`);
      case "snooze":
        throw new SnoozeError(1);
      case "giveUp":
        throw new UnrecoverableError("no use");
      case "cancelItself":
        throw new CancelJobError("not needed");
      case "timeOut":
        return await helpers.abortPromise;
      case "overrun":
        return await rest(120);
      case "completeIn":
        return await transact(this.#db, (tx) => helpers.completeIn(tx));
      case "failBatch":
        throw new AggregateError([new Error("one of them")]);
      case "wait":
        return await rest(15);
    }
  }
}

const historyRows = `
  select job.id::text, coalesce(job.attempt, 1)::int as attempt, 'succeeded' as outcome, null as error, batch.settled_at
  from graphile_worker._hathi_history_batches as batch
  cross join unnest(batch.job_ids, batch.attempts) as job (id, attempt)
  union all
  select job_id::text, attempt, outcome, error, settled_at from graphile_worker._hathi_history_attempts`;

test.each([
  ["outcomes", 1],
  ["full", 2],
] as const)(
  "every run has one entry in history, however it ends and whatever is terminated (%s)",
  async (history, base) => {
    const seed = Number(process.env.OUTCOME_SEED ?? base);
    const roll = dice(seed);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(roll() * items.length)]!;
    const db = await freshDatabase();
    // In the same moment: the end of a new connection may arrive together with the news that it is open.
    db.pool.on("connect", (client) => client.on("error", ignore));
    const utilsUrl = new URL(db.url);
    utilsUrl.searchParams.set("application_name", "spared");
    const utils = await makeWorkerUtils({ connectionString: utilsUrl.href, logger: rememberingLogger().logger });
    onTestFinished(() => utils.release());
    const stage = new Stage(db);
    const options = {
      history,
      concurrency: 8,
      pollInterval: 100,
      taskOptions: {
        act: { backoff: () => 1, timeout: 60, abortGrace: 20, keepResult: history === "full" },
        batch: { backoff: () => 1 },
      },
      forward: [
        forward({
          tasks: ["sent"],
          backoff: { type: "fixed", delay: 1 },
          to: async (batch) => batch.map(() => pick(["acked", "acked", "retry", "reject"] as const)),
        }),
      ],
    };
    const workers = await Promise.all([1, 2, 3].map(() => startWorker(db, stage.tasks, options)));

    const names = Object.keys(acts) as Act[];
    const added: string[] = [];
    const cancelled = new Set<string>();
    let terminated = 0;
    for (let step = 0; step < 20; step++) {
      const jobs = await utils.addJobs(
        Array.from({ length: 12 }, () => {
          const spec = { maxAttempts: pick([2, 4, 25]), ...(roll() < 0.3 && { queueName: pick(["one", "two"]) }) };
          const kind = roll();
          if (kind < 0.15) return { identifier: "batch", payload: [0, 1, 2].slice(0, pick([1, 2, 3])), ...spec };
          if (kind < 0.25) return { identifier: "sent", payload: {}, ...spec };
          return {
            identifier: "act",
            payload: { acts: Array.from({ length: pick([1, 2, 3]) }, () => pick(names)) },
            ...spec,
          };
        }),
      );
      added.push(...jobs.map(({ id }) => id));
      const asked = await utils.cancelJobs(added.slice(-20).filter(() => roll() < 0.1));
      for (const { id } of [...asked.cancelled, ...asked.stopping]) cancelled.add(id);
      const [row] = await db.query<{ count: number }>(
        `select count(pg_terminate_backend(pid))::int as count from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'spared'
         and (query like '%_kept(%' or random() < 0.15)`,
      );
      terminated += row!.count;
      await rest(20);
    }
    await until(
      async () => {
        const jobs = await db.jobs();
        return jobs.every(({ attempts, max_attempts, locked_at }) => locked_at === null && attempts >= max_attempts);
      },
      { what: `every job has ended (seed ${seed})`, withinMs: 60_000 },
    );
    for (const { runner } of workers) await runner.stop();

    const rows = await db.query<{ id: string; attempt: number; outcome: string }>(
      `select id, attempt, outcome, error from (${historyRows}) as rows order by settled_at`,
    );
    const sent = workers
      .flatMap((worker) => worker.of("job:start"))
      .filter(({ job }) => job.task_identifier === "sent")
      .map(({ job }): Run => ({ id: job.id, attempt: job.attempts, act: "sent", mayEnd: either }));
    const runs = [...stage.runs, ...sent];
    const left = [...rows];
    const unkept = runs.filter(({ id, attempt, mayEnd }) => {
      const mayBe = cancelled.has(id) ? [...mayEnd, "cancelled", "succeeded"] : mayEnd;
      const place = left.findIndex((row) => row.id === id && row.attempt === attempt && mayBe.includes(row.outcome));
      if (place < 0) return true;
      left.splice(place, 1);
      return false;
    });
    // A job that was cancelled between its claim and its start is settled, too: once, and without a run.
    const unstarted = left.filter(({ id, outcome }) => outcome === "cancelled" && cancelled.has(id));
    expect(new Set(unstarted.map(({ id }) => id)).size, `seed ${seed}`).toBe(unstarted.length);
    const unexpected = left.filter((row) => !unstarted.includes(row));
    expect({ unkept, unexpected }, `seed ${seed}`).toEqual({ unkept: [], unexpected: [] });
    expect(new Set(rows.map(({ outcome }) => outcome)).size).toBe(5);
    expect(new Set(runs.map(({ act }) => act)).size).toBe(names.length + 2);
    expect([terminated > 0, cancelled.size > 0]).toEqual([true, true]);

    const groups = (from: string): Promise<object[]> =>
      db.query(`select fingerprint, ${from} group by fingerprint order by 1`);
    expect(await groups("sum(failures)::int as count from graphile_worker._hathi_error_groups")).toEqual(
      await groups("count(*)::int from graphile_worker._hathi_history_attempts where fingerprint is not null"),
    );
    const [{ deadlocks }] = (await db.query(
      "select deadlocks::int from pg_stat_database where datname = current_database()",
    )) as [{ deadlocks: number }];
    expect(deadlocks, `seed ${seed}`).toBe(0);
  },
);
