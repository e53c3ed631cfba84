import fc from "fast-check";
import { expect, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { addGuardedJobs, type Guard } from "../../src/db/statements/guards.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { times } from "../support/times.ts";
import { GuardModel, isWaiting, type ModelAdd, type ModelGuard, type ModelJob } from "./guard-model.ts";

const start = Date.parse("2030-01-01T00:00:00Z");
const moment = (minute: number): Date => new Date(start + minute * 60_000);

const key = fc.constantFrom("a", "b");
const minutes = fc.integer({ min: 1, max: 6 });
const guard: fc.Arbitrary<ModelGuard> = fc.oneof(
  fc.record({ kind: fc.constant("debounce" as const), key, delay: minutes, maxWait: fc.constantFrom(null, 6, 9) }),
  fc.record({ kind: fc.constant("throttle" as const), key, period: minutes }),
  fc.record({
    kind: fc.constant("singleton" as const),
    key,
    onConflict: fc.constantFrom("skip" as const, "replace" as const, "cancelRunning" as const),
  }),
);
const add: fc.Arbitrary<ModelAdd> = fc.record({
  task: fc.constantFrom("greet", "wave"),
  payload: fc.nat({ max: 999 }),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  queue: fc.constantFrom(null, null, "q"),
  guard,
});
type Command =
  | { readonly kind: "add"; readonly adds: readonly ModelAdd[] }
  | { readonly kind: "pass"; readonly minutes: number }
  | { readonly kind: "tidy" }
  | {
      readonly kind: "claim" | "fail" | "complete" | "return" | "cancel" | "giveUp" | "remove";
      readonly nth: number;
    };
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("add" as const), adds: fc.array(add, { minLength: 1, maxLength: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pass" as const), minutes }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("claim" as const), nth: fc.nat({ max: 5 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(...(["fail", "complete", "return", "cancel", "giveUp", "remove"] as const)),
      nth: fc.nat({ max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "tidy" as const }) },
);

const nothingHappens = new Set(["tidy", "pass"]);
const fits: Record<string, (job: ModelJob) => boolean> = {
  claim: isWaiting,
  fail: ({ isLocked }) => isLocked,
  complete: ({ isLocked }) => isLocked,
  return: ({ isLocked }) => isLocked,
  cancel: ({ isLocked, attempts, maxAttempts }) => isLocked || attempts < maxAttempts,
  giveUp: ({ isLocked }) => !isLocked,
  remove: ({ isLocked }) => !isLocked,
};

/** What a worker or an operator does to a row, and what that means to the model. */
const acts: Record<string, { readonly text: string; readonly apply: (model: GuardModel, job: ModelJob) => void }> = {
  claim: {
    text: "update graphile_worker._private_jobs set attempts = attempts + 1, locked_by = 'w', locked_at = now() where id = $1",
    apply: (_, job) => Object.assign(job, { attempts: job.attempts + 1, isLocked: true }),
  },
  fail: {
    text: "select graphile_worker._hathi_fail_jobs('w', array[$1::bigint], (select array[attempts]::integer[] from graphile_worker._private_jobs where id = $1), array['no'], array[null]::text[], '{}', '{}', false)",
    apply: (model, job) => (job.isCancelled ? model.remove(job) : Object.assign(job, { isLocked: false })),
  },
  complete: {
    text: "delete from graphile_worker._private_jobs where id = $1",
    apply: (model, job) => model.remove(job),
  },
  return: {
    text: `update graphile_worker._private_jobs set locked_by = null, locked_at = null,
      attempts = attempts - (not exists (select from graphile_worker._private_job_retirements as one where one.id = $1))::integer
      where id = $1`,
    apply: (_, job) => Object.assign(job, { isLocked: false, attempts: job.attempts - (job.isRetired ? 0 : 1) }),
  },
  cancel: {
    text: "select graphile_worker.cancel_jobs(array[$1::bigint])",
    apply: (model, job) =>
      job.isLocked
        ? Object.assign(job, { isRetired: true, isCancelled: true, attempts: job.maxAttempts })
        : model.remove(job),
  },
  giveUp: {
    text: "select graphile_worker.permanently_fail_jobs(array[$1::bigint])",
    apply: (_, job) => Object.assign(job, { attempts: job.maxAttempts }),
  },
  remove: {
    text: "select graphile_worker.complete_jobs(array[$1::bigint])",
    apply: (model, job) => model.remove(job),
  },
};

function toGuard(guard: ModelGuard): Guard {
  if (guard.kind === "debounce") {
    return { ...guard, delay: guard.delay * 60_000, maxWait: guard.maxWait && guard.maxWait * 60_000 };
  }
  return guard.kind === "throttle" ? { ...guard, period: guard.period * 60_000 } : guard;
}

async function perform(
  db: TestDatabase,
  model: GuardModel,
  ids: Map<ModelJob, string>,
  command: Command,
): Promise<void> {
  if (command.kind === "pass") model.now += command.minutes;
  else if (command.kind === "tidy") {
    // The guards' clock is ahead of the server's: as if their time had come.
    await db.query(
      "update graphile_worker._hathi_add_guards set expires_at = 'epoch' where kind <> 'throttle' or expires_at <= $1",
      [moment(model.now)],
    );
    await db.query("select graphile_worker._hathi_tidy_guards(100)");
    model.tidy();
  } else if (command.kind === "add") {
    const jobs = command.adds.map(({ task, payload, maxAttempts, queue, guard }) => ({
      identifier: task,
      payload: JSON.stringify(payload),
      queueName: queue,
      runAt: guard.kind === "debounce" ? null : moment(model.now).toISOString(),
      maxAttempts,
      jobKey: null,
      priority: null,
      flags: null,
      jobKeyMode: null,
      guard: toGuard(guard),
    }));
    const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
    const rows = await database.run(addGuardedJobs, { jobs, clock: moment(model.now) });
    for (const [index, one] of command.adds.entries()) {
      const made = model.add(one);
      expect(rows[index]?.skipped ?? null).toBe(made === "skipped" ? one.guard.kind : null);
      if (made !== "skipped") ids.set(made, rows[index]!.id);
    }
  } else {
    const fitting = model.jobs.filter(fits[command.kind]!);
    const job = fitting[command.nth % fitting.length];
    if (!job) return;
    await db.query(acts[command.kind]!.text, [ids.get(job)]);
    acts[command.kind]!.apply(model, job);
  }
}

async function compare(db: TestDatabase, model: GuardModel, ids: Map<ModelJob, string>): Promise<void> {
  const rows = (await db.jobs()).map((row) => ({
    id: row.id,
    task: row.task_identifier,
    payload: row.payload,
    // A failed job rests for a while; only what an add said is compared.
    runAt: row.last_error !== null ? "later" : row.run_at.getTime(),
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    isLocked: row.locked_at !== null,
    queue: row.queue_name,
  }));
  const failed = new Set(rows.filter(({ runAt }) => runAt === "later").map(({ id }) => id));
  const expected = model.jobs.map((job) => ({
    id: ids.get(job)!,
    task: job.task,
    payload: job.payload,
    runAt: failed.has(ids.get(job)!) ? "later" : moment(job.runAt).getTime(),
    attempts: job.attempts,
    maxAttempts: job.maxAttempts,
    isLocked: job.isLocked,
    queue: job.queue,
  }));
  const byId = (one: { id: string }, other: { id: string }): number => Number(one.id) - Number(other.id);
  expect(rows.sort(byId)).toEqual(expected.sort(byId));
}

test("guarded adds do what the model says, whatever happens to their jobs", async () => {
  const db = await freshDatabase();
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), async (commands) => {
      await db.query(
        "truncate graphile_worker._private_jobs, graphile_worker._hathi_add_guards, graphile_worker._private_job_retirements, graphile_worker._hathi_job_cancellations",
      );
      const model = new GuardModel();
      const ids = new Map<ModelJob, string>();
      for (const one of commands) {
        await perform(db, model, ids, one);
        if (!nothingHappens.has(one.kind)) await compare(db, model, ids);
      }
    }),
    { numRuns: times(30) },
  );
}, 60_000);
