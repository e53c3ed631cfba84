import fc from "fast-check";
import { expect, test } from "vitest";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { cancelJobs, ruleJobs, tidyControl } from "../../src/db/statements/control.ts";
import { completeJobs, failJobs, returnJobs } from "../../src/db/statements/settle.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { times } from "../support/times.ts";

/** What a job can be, as users are told. */
type State = "waiting" | "running" | "dead" | "done" | "cancelled";

interface ModelJob {
  state: State;
  attempts: number;
  /** Cancelled, replaced or removed while it ran. */
  isRetired: boolean;
  isCancelled: boolean;
  key: string | null;
}

interface Real {
  readonly db: TestDatabase;
  readonly database: Database;
  /** Ids by the model's numbers. */
  readonly ids: string[];
}

type Model = ModelJob[];

const maxAttempts = 3;
const poolId = "model-pool";

async function check(model: Model, real: Real): Promise<void> {
  for (const [n, job] of model.entries()) {
    const row = await real.db.job(real.ids[n]!);
    const actual: State | "gone" = !row
      ? "gone"
      : row.locked_at !== null
        ? "running"
        : row.attempts >= row.max_attempts
          ? "dead"
          : "waiting";
    const expected = job.state === "done" || job.state === "cancelled" ? "gone" : job.state;
    expect({ n, actual, attempts: row?.attempts }).toEqual({
      n,
      actual: expected,
      attempts: expected === "gone" ? undefined : job.isRetired ? maxAttempts : job.attempts,
    });
    if (job.isCancelled) {
      const [record] = await real.db.query(
        "select outcome from graphile_worker._hathi_job_cancellations where job_id = $1",
        [real.ids[n]],
      );
      if (job.state === "cancelled") expect(record).toEqual({ outcome: "cancelled" });
      else expect(record?.outcome).not.toBe("cancelled");
    }
  }
}

/** What becomes of a job that has run and did not succeed, unless it was retired. */
function endBadly(job: ModelJob, otherwise: (job: ModelJob) => void): void {
  if (job.isCancelled) job.state = "cancelled";
  else if (job.isRetired) job.state = "dead";
  else otherwise(job);
}

const noRelease = { queueIds: null } as const;

type Step = (job: ModelJob, id: string, real: Real) => Promise<void>;

class Act implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #n: number;
  readonly #needs: (job: ModelJob) => boolean;
  readonly #run: Step;

  constructor(name: string, n: number, needs: (job: ModelJob) => boolean, run: Step) {
    this.#name = name;
    this.#n = n;
    this.#needs = needs;
    this.#run = run;
  }

  #pick(model: Readonly<Model>): number {
    const fitting = [...model.keys()].filter((n) => this.#needs(model[n]!));
    return fitting.length === 0 ? -1 : fitting[this.#n % fitting.length]!;
  }

  check(model: Readonly<Model>): boolean {
    return this.#pick(model) >= 0;
  }

  async run(model: Model, real: Real): Promise<void> {
    const n = this.#pick(model);
    await this.#run(model[n]!, real.ids[n]!, real);
    await check(model, real);
  }

  toString(): string {
    return `${this.#name}(${this.#n})`;
  }
}

class Add implements fc.AsyncCommand<Model, Real> {
  readonly #key: string | null;
  readonly #cancelRunning: boolean;

  constructor(key: string | null, cancelRunning: boolean) {
    this.#key = key;
    this.#cancelRunning = key !== null && cancelRunning;
  }

  check(): boolean {
    return true;
  }

  async run(model: Model, real: Real): Promise<void> {
    const call = this.#cancelRunning
      ? "select id::text from graphile_worker._hathi_replace_job('t', null, null, null, $1, $2, null, null, null)"
      : "select id::text from graphile_worker.add_job('t', max_attempts => $1, job_key => $2)";
    const [row] = await real.db.query<{ id: string }>(call, [maxAttempts, this.#key]);
    const known = model.findIndex(({ key, state }) => key !== null && key === this.#key && state !== "done");
    if (this.#key !== null && known >= 0) {
      const job = model[known]!;
      if (job.state === "waiting") {
        job.attempts = 0;
      } else {
        // It runs or is dead: it lets go of its key, and there is a new job.
        job.key = null;
        if (job.state === "running") {
          job.isRetired = true;
          if (this.#cancelRunning) job.isCancelled = true;
        }
      }
    }
    if (!real.ids.includes(row!.id)) {
      real.ids.push(row!.id);
      model.push({ state: "waiting", attempts: 0, isRetired: false, isCancelled: false, key: this.#key });
    }
    await check(model, real);
  }

  toString(): string {
    return `add(${this.#key}${this.#cancelRunning ? ", cancelRunning" : ""})`;
  }
}

const isRunning = ({ state }: ModelJob): boolean => state === "running";
const ruled = (id: string, job: ModelJob, ruling: "retry" | "give-up" | "snooze" | "cancel") => ({
  poolId,
  isInDoubt: false,
  ...noRelease,
  jobs: [
    {
      id,
      attempt: job.attempts,
      ruling,
      error: "model",
      payload: null,
      delayMs: 0,
      runAt: null,
      cap: null,
      token: ruling === "snooze" ? `${id}-${Math.random()}` : null,
    },
  ],
});

const makers: Record<string, (n: number) => Act> = {
  claim: (n) =>
    new Act(
      "claim",
      n,
      ({ state }) => state === "waiting",
      async (job, id, { db }) => {
        await db.query(
          `update graphile_worker._private_jobs set attempts = attempts + 1, locked_at = now(), locked_by = $2 where id = $1`,
          [id, poolId],
        );
        job.state = "running";
        job.attempts++;
      },
    ),
  succeed: (n) =>
    new Act("succeed", n, isRunning, async (job, id, { database }) => {
      await database.run(completeJobs, { poolId, jobIds: [id], ...noRelease });
      job.state = "done";
    }),
  fail: (n) =>
    new Act("fail", n, isRunning, async (job, id, { database }) => {
      const params = {
        poolId,
        jobIds: [id],
        attempts: [job.attempts],
        errors: ["model"],
        payloads: [null],
        isInDoubt: false,
      };
      await database.run(failJobs, { ...params, ...noRelease });
      endBadly(job, () => {
        job.state = job.attempts >= maxAttempts ? "dead" : "waiting";
      });
    }),
  timeOut: (n) =>
    new Act("timeOut", n, isRunning, async (job, id, { database }) => {
      await database.run(ruleJobs, ruled(id, job, "retry"));
      endBadly(job, () => {
        job.state = job.attempts >= maxAttempts ? "dead" : "waiting";
      });
    }),
  snooze: (n) =>
    new Act("snooze", n, isRunning, async (job, id, { database }) => {
      await database.run(ruleJobs, ruled(id, job, "snooze"));
      endBadly(job, () => {
        job.state = "waiting";
        job.attempts--;
      });
    }),
  giveUp: (n) =>
    new Act("giveUp", n, isRunning, async (job, id, { database }) => {
      await database.run(ruleJobs, ruled(id, job, "give-up"));
      endBadly(job, () => {
        job.state = "dead";
        job.attempts = maxAttempts;
      });
    }),
  cancelItself: (n) =>
    new Act("cancelItself", n, isRunning, async (job, id, { database }) => {
      await database.run(ruleJobs, ruled(id, job, "cancel"));
      job.state = "cancelled";
      job.isCancelled = true;
    }),
  interrupt: (n) =>
    new Act("interrupt", n, isRunning, async (job, id, { database }) => {
      await database.run(returnJobs, {
        poolId,
        jobIds: [id],
        attempts: null,
        hasStarted: true,
        delayMs: 0,
        reason: "model",
        ...noRelease,
      });
      endBadly(job, () => {
        job.state = "waiting";
        job.attempts--;
      });
    }),
  returnUnstarted: (n) =>
    new Act("returnUnstarted", n, isRunning, async (job, id, { database }) => {
      await database.run(returnJobs, {
        poolId,
        jobIds: [id],
        attempts: [job.attempts],
        hasStarted: false,
        delayMs: null,
        reason: null,
        ...noRelease,
      });
      if (job.isCancelled) job.state = "cancelled";
      else if (job.isRetired) job.state = "done";
      else {
        job.state = "waiting";
        job.attempts--;
      }
    }),
  sweep: (n) =>
    new Act("sweep", n, isRunning, async (job, id, { db }) => {
      await db.query("update graphile_worker._private_jobs set locked_by = 'dead-pool' where id = $1", [id]);
      await db.query("select graphile_worker.recover_dead_worker_jobs(array['dead-pool'])");
      endBadly(job, () => {
        job.state = "waiting";
        job.attempts--;
      });
    }),
  fourHourRule: (n) =>
    new Act("fourHourRule", n, isRunning, async (job, id, { db, database }) => {
      await db.query("update graphile_worker._private_jobs set locked_at = null, locked_by = null where id = $1", [id]);
      await database.run(tidyControl, {});
      endBadly(job, () => {
        job.state = job.attempts >= maxAttempts ? "dead" : "waiting";
      });
    }),
  cancel: (n) =>
    new Act(
      "cancel",
      n,
      ({ state }) => state !== "done" && state !== "cancelled",
      async (job, id, { database }) => {
        await database.run(cancelJobs, { ids: [id], reason: "model" });
        if (job.state === "dead") return;
        job.isCancelled = true;
        if (job.state === "waiting") job.state = "cancelled";
        else {
          job.isRetired = true;
          job.key = null;
        }
      },
    ),
  remove: (n) =>
    new Act(
      "remove",
      n,
      ({ key, state }) => key !== null && (state === "waiting" || state === "running"),
      async (job, _id, { db }) => {
        await db.query("select graphile_worker.remove_job($1)", [job.key]);
        if (job.state === "waiting") job.state = "done";
        else {
          job.isRetired = true;
          job.key = null;
        }
      },
    ),
  reschedule: (n) =>
    new Act(
      "reschedule",
      n,
      ({ state }) => state === "dead",
      async (job, id, { db }) => {
        await db.query("select graphile_worker.reschedule_jobs(array[$1::bigint], run_at => now(), attempts => 0)", [
          id,
        ]);
        job.state = "waiting";
        job.attempts = 0;
        job.isRetired = false;
      },
    ),
};

const commands = [
  fc
    .tuple(fc.constantFrom(null, null, "a", "b"), fc.boolean())
    .map(([key, cancelRunning]) => new Add(key, cancelRunning)),
  ...Object.values(makers).map((make) => fc.nat(5).map(make)),
  fc.nat(5).map(makers.claim!),
  fc.nat(5).map(makers.cancel!),
];

test("whatever happens to jobs, each is in the state it should be in, and a cancelled one never waits again", async () => {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: "max" }), async (steps) => {
      await db.query(
        "truncate graphile_worker._private_jobs, graphile_worker._hathi_job_cancellations, graphile_worker._private_job_retirements",
      );
      await fc.asyncModelRun(() => ({ model: [], real: { db, database, ids: [] } }), steps);
    }),
    { numRuns: times(30) },
  );
});
