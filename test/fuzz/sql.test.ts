import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { sharedDatabase } from "../support/shared-database.ts";
import { nastyString, seeded } from "./kit.ts";

vi.setConfig({ testTimeout: 180_000 });

const database = sharedDatabase();
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null });
const integer = fc.oneof(fc.integer(), fc.integer({ min: -3, max: 30 }), fc.constantFrom(32_767, 32_768, -32_769));
const moment = fc.constantFrom(
  "2030-01-01",
  "infinity",
  "-infinity",
  "epoch",
  "294276-12-31",
  "4713-01-01 BC",
  "tomorrow",
  "never",
);
const json = fc.oneof(fc.json(), fc.constantFrom("[]", "[1]", "null", '"\\u0000"', '{"a":', "nan"));
const flags = fc.array(orNull(nastyString), { maxLength: 3 });
const id = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(-1, Number.MAX_SAFE_INTEGER));
const mode = fc.oneof(fc.constantFrom("replace", "preserve_run_at", "unsafe_dedupe"), nastyString);
const span = fc.constantFrom("1 second", "0", "-1 day", "1 year", "178000000 years", "1 microsecond", "soon");
const onConflict = fc.oneof(fc.constantFrom("skip", "replace", "cancelRunning"), nastyString);
const pauseKind = fc.oneof(fc.constantFrom("task", "queue", "worker", "cron", "all"), nastyString);
const shortKey = fc.oneof(fc.constantFrom("a", "b"), nastyString);

/** A call, and its parameters. */
type Call = readonly [text: string, values: unknown[]];
const call: fc.Arbitrary<Call> = fc.oneof(
  fc
    .tuple(
      nastyString,
      orNull(json),
      orNull(nastyString),
      orNull(moment),
      orNull(integer),
      orNull(shortKey),
      orNull(integer),
      orNull(flags),
      orNull(mode),
    )
    .map(
      (values): Call => [
        "select * from graphile_worker.add_job($1, $2::json, $3, $4::timestamptz, $5, $6, $7, $8::text[], $9)",
        values,
      ],
    ),
  fc
    .tuple(
      fc.array(
        fc.record({
          identifier: orNull(nastyString),
          payload: fc.jsonValue(),
          queue_name: orNull(nastyString),
          max_attempts: orNull(fc.integer({ min: -2, max: 40_000 })),
          job_key: orNull(shortKey),
          priority: orNull(integer),
          flags: orNull(flags),
        }),
        { maxLength: 4 },
      ),
      orNull(fc.boolean()),
    )
    .map(
      ([specs, preserve]): Call => [
        "select * from graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)), $2)",
        [JSON.stringify(specs), preserve],
      ],
    ),
  fc.tuple(orNull(shortKey)).map((values): Call => ["select * from graphile_worker.remove_job($1)", values]),
  fc.tuple(fc.array(id)).map((values): Call => ["select * from graphile_worker.complete_jobs($1::bigint[])", values]),
  fc
    .tuple(fc.array(id), orNull(nastyString))
    .map((values): Call => ["select * from graphile_worker.permanently_fail_jobs($1::bigint[], $2)", values]),
  fc
    .tuple(fc.array(id), orNull(moment), orNull(integer), orNull(integer), orNull(integer))
    .map(
      (values): Call => [
        "select * from graphile_worker.reschedule_jobs($1::bigint[], $2::timestamptz, $3, $4, $5)",
        values,
      ],
    ),
  fc
    .tuple(fc.array(nastyString))
    .map((values): Call => ["select graphile_worker.force_unlock_workers($1::text[])", values]),
  fc
    .tuple(
      nastyString,
      orNull(json),
      orNull(shortKey),
      orNull(span),
      orNull(span),
      orNull(nastyString),
      orNull(integer),
    )
    .map(
      (values): Call => [
        "select * from graphile_worker.add_debounced_job($1, $2::json, $3, $4::interval, $5::interval, $6, $7)",
        values,
      ],
    ),
  fc
    .tuple(nastyString, orNull(json), orNull(shortKey), orNull(span), orNull(nastyString), orNull(moment))
    .map(
      (values): Call => [
        "select * from graphile_worker.add_throttled_job($1, $2::json, $3, $4::interval, $5, $6::timestamptz)",
        values,
      ],
    ),
  fc
    .tuple(nastyString, orNull(json), orNull(shortKey), orNull(onConflict), orNull(nastyString), orNull(moment))
    .map(
      (values): Call => [
        "select * from graphile_worker.add_singleton_job($1, $2::json, $3, $4, $5, $6::timestamptz)",
        values,
      ],
    ),
  fc
    .tuple(fc.array(id), orNull(nastyString), orNull(nastyString))
    .map((values): Call => ["select * from graphile_worker.cancel_jobs($1::bigint[], $2, $3)", values]),
  fc
    .tuple(pauseKind, orNull(nastyString), orNull(moment), orNull(nastyString), orNull(nastyString))
    .map((values): Call => ["select * from graphile_worker.pause_work($1, $2, $3::timestamptz, $4, $5)", values]),
  fc
    .tuple(pauseKind, orNull(nastyString))
    .map((values): Call => ["select * from graphile_worker.resume_work($1, $2)", values]),
  fc
    .tuple(nastyString, orNull(shortKey), orNull(integer), orNull(integer), orNull(integer), orNull(span), orNull(mode))
    .map((values): Call => ["select * from graphile_worker.set_limit($1, $2, $3, $4, $5, $6::interval, $7)", values]),
  fc
    .tuple(nastyString, orNull(shortKey), orNull(mode))
    .map((values): Call => ["select * from graphile_worker.clear_limit($1, $2, $3)", values]),
  fc
    .tuple(nastyString, orNull(json))
    .map((values): Call => ["select graphile_worker.worker_heartbeat($1, $2::json)", values]),
  fc.tuple(nastyString).map((values): Call => ["select graphile_worker.worker_deregister($1)", values]),
  fc
    .tuple(span)
    .map((values): Call => ["select * from graphile_worker.list_orphan_locked_workers($1::interval)", values]),
  fc
    .tuple(fc.array(orNull(nastyString)), span)
    .map((values): Call => ["select graphile_worker.recover_dead_worker_jobs($1::text[], $2::interval)", values]),
  fc
    .tuple(fc.array(orNull(nastyString)))
    .map((values): Call => ["select graphile_worker.delete_stale_workers($1::text[])", values]),
);

/** Refusals of a value: it cannot be read, is out of range, breaks a constraint, or one of ours. */
const refusal = /^(22|23|GWB|21000)/;

test("any call of a public function does what it should or refuses a value, and the tables stay sound", async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(call, async ([text, values]) => {
      await database()
        .query(text, values)
        .then(() => accepted++)
        .catch((error: { code?: string; message: string }) => {
          expect(error.code, error.message).toMatch(refusal);
        });
      const [unsound] = await database().query(`
        select count(*)::int as count from graphile_worker._private_jobs as job
        where not exists (select from graphile_worker._private_tasks as task where task.id = job.task_id)
          or job.job_queue_id is not null
            and not exists (select from graphile_worker._private_job_queues as queue where queue.id = job.job_queue_id)`);
      expect(unsound).toEqual({ count: 0 });
    }),
    seeded(700),
  );
  expect(accepted).toBeGreaterThan(100);
});
