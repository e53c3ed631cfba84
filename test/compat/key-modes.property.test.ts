import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestDatabase } from "../support/database.ts";
import { type AddSpec, type Command, KeyModel, type ModelJob } from "../support/key-model.ts";
import { times } from "../support/times.ts";
import { emptyDatabase, originalDatabase, ourDatabase } from "./both-ways.ts";

const start = Date.parse("2030-01-01T00:00:00Z");
const key = fc.constantFrom("a", "b", "c");
const minute = fc.integer({ min: 0, max: 9 });

const spec: fc.Arbitrary<AddSpec> = fc.record({
  task: fc.constantFrom("greet", "wave"),
  queue: fc.constantFrom(null, "q"),
  payload: fc.oneof(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 2 }), fc.record({ n: minute }), minute),
  runAt: minute,
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  key: fc.oneof({ weight: 4, arbitrary: key }, fc.constant(null)),
});

const nth = fc.nat({ max: 5 });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("add" as const),
      spec,
      mode: fc.constantFrom("replace" as const, "preserve_run_at" as const, "unsafe_dedupe" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("addMany" as const),
      specs: fc.uniqueArray(spec, { maxLength: 4, selector: (one) => one.key ?? one }),
      preserve: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("claim" as const), nth, lockedFor: fc.constantFrom(0, 5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("remove" as const), key }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "fail" as const,
        "complete" as const,
        "return" as const,
        "giveUp" as const,
        "finish" as const,
      ),
      nth,
    }),
  },
  fc.record({ kind: fc.constant("reschedule" as const), nth, runAt: minute, attempts: fc.nat({ max: 2 }) }),
);

/** Does in a database what the model does in memory, to a job that looks like the target. */
async function perform(database: TestDatabase, command: Command, target: ModelJob | undefined): Promise<void> {
  const { query } = database;
  if (command.kind === "add") {
    const { task, queue, payload, runAt, maxAttempts, key } = command.spec;
    const values = [task, JSON.stringify(payload), queue, moment(runAt), maxAttempts, key, command.mode];
    const [row] = await query(
      `select * from graphile_worker.add_job($1, $2::json, queue_name => $3, run_at => $4, max_attempts => $5,
        job_key => $6, job_key_mode => $7)`,
      values,
    );
    expect(row?.id).not.toBeNull();
    return;
  }
  if (command.kind === "addMany") {
    const specs = command.specs.map(({ task, queue, payload, runAt, maxAttempts, key }) => ({
      identifier: task,
      queue_name: queue,
      payload,
      run_at: moment(runAt),
      max_attempts: maxAttempts,
      job_key: key,
    }));
    const rows = await query(
      `select * from graphile_worker.add_jobs(
        array(select json_populate_record(null::graphile_worker.job_spec, spec) from json_array_elements($1) as spec), $2)`,
      [JSON.stringify(specs), command.preserve],
    );
    expect(rows).toHaveLength(specs.length);
    return;
  }
  if (command.kind === "remove") {
    await query("select graphile_worker.remove_job($1)", [command.key]);
    return;
  }
  if (target === undefined) return;
  const id = (await read(database)).find((job) => show(job) === show(target))?.id;
  switch (command.kind) {
    case "claim":
      await query(
        `update graphile_worker._private_jobs set attempts = attempts + 1, locked_by = 'pool-1',
          locked_at = now() - make_interval(hours => $2) where id = $1`,
        [id, command.lockedFor],
      );
      return;
    case "fail":
      await query(
        `update graphile_worker._private_jobs set last_error = 'oops', locked_by = null, locked_at = null where id = $1`,
        [id],
      );
      return;
    case "return":
      await query(
        `update graphile_worker._private_jobs set attempts = greatest(0, attempts - 1), locked_by = null, locked_at = null
          where id = $1`,
        [id],
      );
      return;
    case "complete":
      await query(`delete from graphile_worker._private_jobs where id = $1`, [id]);
      return;
    case "finish":
      await query(`select graphile_worker.complete_jobs(array[$1::bigint])`, [id]);
      return;
    case "giveUp":
      await query(`select graphile_worker.permanently_fail_jobs(array[$1::bigint], 'enough')`, [id]);
      return;
    case "reschedule":
      await query(`select graphile_worker.reschedule_jobs(array[$1::bigint], run_at => $2, attempts => $3)`, [
        id,
        moment(command.runAt),
        command.attempts,
      ]);
  }
}

function moment(minutes: number): string {
  return new Date(start + minutes * 60_000).toISOString();
}

async function read(database: TestDatabase): Promise<Array<ModelJob & { id: string }>> {
  return (await database.jobs()).map((job) => ({
    id: job.id,
    task: job.task_identifier,
    queue: job.queue_name,
    payload: job.payload,
    runAt: (job.run_at.getTime() - start) / 60_000,
    attempts: job.attempts,
    maxAttempts: job.max_attempts,
    lastError: job.last_error,
    key: job.key,
    lockedFor: job.locked_at && Math.round((Date.now() - job.locked_at.getTime()) / 3_600_000),
    revision: job.revision,
  }));
}

/** Ids are left out: the order in which one call writes its rows is nobody's promise. */
function show(job: ModelJob): string {
  const { task, queue, payload, runAt, attempts, maxAttempts, lastError, key, lockedFor, revision } = job;
  return JSON.stringify({ task, queue, payload, runAt, attempts, maxAttempts, lastError, key, lockedFor, revision });
}

function sorted(jobs: readonly ModelJob[]): string[] {
  return jobs.map(show).sort();
}

let ours: TestDatabase;
let original: TestDatabase;
beforeAll(async () => {
  ours = await ourDatabase();
  original = await originalDatabase();
});
afterAll(async () => {
  await ours?.drop();
  await original?.drop();
});

test("any sequence of adds, claims, ends and removals leaves the same jobs in the model, in ours and in the original", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 20 }), async (commands) => {
      await Promise.all([emptyDatabase(ours), emptyDatabase(original)]);
      const model = new KeyModel();
      for (const command of commands) {
        const target = structuredClone(model.target(command));
        model.apply(command);
        await Promise.all([perform(ours, command, target), perform(original, command, target)]);
        const [left, right] = await Promise.all([read(ours), read(original)]);
        const expected = sorted(model.jobs);
        expect(sorted(left)).toEqual(expected);
        expect(sorted(right)).toEqual(expected);
      }
    }),
    { numRuns: times(40), interruptAfterTimeLimit: 20_000 },
  );
});
