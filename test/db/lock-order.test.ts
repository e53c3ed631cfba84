import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { claimJobs } from "../../src/db/statements/claim.ts";
import { deleteDeadJobs } from "../../src/db/statements/cleanup.ts";
import { scheduleCronJobs } from "../../src/db/statements/cron.ts";
import { refreshLocks, resetLocks } from "../../src/db/statements/locks.ts";
import { completeJobs, failJobs, returnJobs } from "../../src/db/statements/settle.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { dice, shuffled } from "../support/dice.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

// Much work for one test, and the machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

/*
 * The order in which several rows are locked: tasks and queues by name, jobs by id and before queues that are written. Whoever waits
 * for locks keeps it, whatever the order of the arguments; workers use `skip locked` and wait for nobody.
 */

const keys = Array.from({ length: 40 }, (_, n) => `key ${n}`);

/** Finds out about deadlocks soon, but not before a worker gives way (`000004-settle.sql`). */
const impatient = { options: "-c deadlock_timeout=300ms" };

async function connect(db: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: db.url, ...impatient });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test.each([1, 2, 3, 4])(
  "an application that re-adds running jobs in the other order than they are settled in gets no deadlock (%i)",
  async (seed) => {
    const db = await freshDatabase();
    const roll = dice(seed);
    const ends = [undefined, new Error("no")];
    let held = heldTask();
    await startWorker(db, { t: (payload, helpers) => held.task(payload, helpers) }, { concurrency: 2 });
    const application = await connect(db);
    for (let round = 0; round < 25; round++) {
      held = heldTask();
      await db.query("delete from graphile_worker._private_jobs where locked_at is null");
      await db.query(`
        select graphile_worker.add_job('t', job_key => 'one ${round}', max_attempts => 1),
          graphile_worker.add_job('t', job_key => 'two ${round}', max_attempts => 1)`);
      await held.begun(2);
      const restMs = roll() * 6;
      const isFailing = roll() < 0.3;
      const ending = sleep(roll() * 6).then(() => {
        for (const index of [0, 1]) held.release(index, ends[Number(isFailing)]);
      });
      await application.query("begin");
      const future = "run_at => now() + interval '1 day'";
      await application.query(`select graphile_worker.add_job('t', job_key => 'two ${round}', ${future})`);
      await sleep(restMs);
      await application.query(`select graphile_worker.add_job('t', job_key => 'one ${round}', ${future})`);
      await application.query("commit");
      await ending;
    }
  },
  60_000,
);

test.each([1, 2, 3])(
  "statements that lock many rows do not deadlock, whatever the order of their arguments (%i)",
  { timeout: 60_000 },
  async (seed) => {
    const db = await freshDatabase();
    const roll = dice(seed);
    await addKeys(db);
    let ids: string[] = [];
    const refresh = async (): Promise<void> => {
      const rows = await db.query<{ id: string }>("select id from graphile_worker._private_jobs");
      ids = rows.map(({ id }) => id);
      if (ids.length < keys.length) await addKeys(db);
    };
    await refresh();

    const worker = poolDatabase(testPool(db.url, 3, impatient), { schema: db.schema, preparedStatements: true });
    const anyPool = (): string => `pool ${Math.floor(roll() * 3)}`;
    const anyOrder = (): string[] => shuffled(ids, roll).slice(0, 5 + Math.floor(roll() * ids.length));
    const anyQueues = (): number[] => shuffled([1, 2, 3, 4, 5, 6, 7], roll).slice(0, 3);
    const functions: [string, () => unknown[]][] = [
      ["select graphile_worker.complete_jobs($1)", () => [anyOrder().slice(0, 5)]],
      ["select graphile_worker.permanently_fail_jobs($1)", () => [anyOrder().slice(0, 10)]],
      ["select graphile_worker.reschedule_jobs($1, attempts => 0, max_attempts => 5)", () => [anyOrder()]],
      ["select graphile_worker.force_unlock_workers($1)", () => [[anyPool(), anyPool()]]],
      ["select graphile_worker.remove_job($1)", () => [keys[Math.floor(roll() * keys.length)]]],
      ["select graphile_worker.recover_dead_worker_jobs($1)", () => [[anyPool(), anyPool()]]],
      [
        `select graphile_worker.add_jobs(array(select ('t' || n % 3, null, 'q' || n % 7, null, null, key, null, null)::graphile_worker.job_spec
          from unnest($1::text[]) with ordinality as given (key, n)))`,
        () => [shuffled(keys, roll).slice(0, 25)],
      ],
      [
        `select from graphile_worker._hathi_add_guarded(array(
          select ('t' || n % 3, null, 'q' || n % 7, null, null, case when n % 4 = 0 then key end, null, null, null,
            case n % 4 when 1 then 'debounce' when 2 then 'throttle' when 3 then 'singleton' end, case when n % 4 > 0 then key end,
            '1 ms', null, case n % 4 when 3 then 'cancelRunning' end)::graphile_worker._hathi_guarded_spec
          from unnest($1::text[]) with ordinality as given (key, n)), null)`,
        () => [shuffled(keys, roll).slice(0, 12)],
      ],
      ["select graphile_worker._hathi_tidy_guards(5)", () => []],
    ];
    const statements: (() => Promise<unknown>)[] = [
      () => worker.run(completeJobs, { poolId: anyPool(), jobIds: anyOrder(), queueIds: anyQueues() }),
      () =>
        worker.run(returnJobs, {
          poolId: anyPool(),
          jobIds: anyOrder(),
          attempts: null,
          queueIds: anyQueues(),
          hasStarted: false,
          delayMs: null,
          reason: null,
        }),
      () => {
        const jobIds = anyOrder();
        const of = <T>(value: T): T[] => jobIds.map(() => value);
        const outcome = {
          attempts: of(1),
          errors: of("no"),
          payloads: of(null),
          queueIds: anyQueues(),
          isInDoubt: false,
        };
        return worker.run(failJobs, { poolId: anyPool(), jobIds, ...outcome });
      },
      () => worker.run(refreshLocks, { poolId: anyPool(), jobIds: anyOrder(), queueIds: anyQueues(), clock: null }),
      () => worker.run(resetLocks, { clock: new Date(Date.now() + 5 * 3_600_000) }),
      () => worker.run(deleteDeadJobs, {}),
      () => {
        const runs = shuffled(keys, roll)
          .slice(0, 10)
          .map((identifier, nth) => ({
            identifier,
            task: `t${Math.floor(roll() * 9)}`,
            payload: {},
            queue_name: `q${nth % 5}`,
            may_overlap: true,
            is_wanted: true,
          }));
        return worker.run(scheduleCronJobs, { at: new Date(), runs, isRepeat: true });
      },
      () =>
        worker.run(claimJobs, {
          poolId: anyPool(),
          taskIds: shuffled([1, 2, 3, 4, 5, 6, 7, 8, 9], roll).slice(0, 5),
          wanted: 15,
          perQueue: 4,
          forbidden: null,
          accepted: null,
          clock: null,
          marks: [],
          withQueues: true,
          relaxed: true,
        }),
    ];
    const failures: string[] = [];
    const act = async (client: pg.Client): Promise<void> => {
      const isOurs = roll() < 0.4;
      const [text, values] = functions[Math.floor(roll() * functions.length)]!;
      const statement = statements[Math.floor(roll() * statements.length)]!;
      try {
        await (isOurs ? statement() : client.query(text, values()));
      } catch (error) {
        failures.push(
          `${isOurs ? statement.toString() : text}: ${(error as Error).message} ${(error as pg.DatabaseError).detail}`,
        );
      }
    };
    const clients = await Promise.all(Array.from({ length: 6 }, () => connect(db)));
    await Promise.all(
      clients.map(async (client) => {
        for (let n = 0; n < 120; n++) {
          if (n % 5 === 0) await refresh();
          await act(client);
        }
      }),
    );
    expect(failures).toEqual([]);
  },
);

async function addKeys(db: TestDatabase): Promise<void> {
  await db.query(
    `select graphile_worker.add_jobs(array(
      select ('t', null, 'q' || n % 7, null, null, key, null, null)::graphile_worker.job_spec
      from unnest($1::text[]) with ordinality as given (key, n)))`,
    [keys],
  );
}

test("adds of tasks and queues that are new, in any order, do not deadlock", async () => {
  const db = await freshDatabase();
  const roll = dice(1);
  const pool = testPool(db.url, 8, impatient);
  const add = (names: string[]): Promise<unknown> =>
    pool.query(
      "select graphile_worker._hathi_add_jobs($1::text[], array[1], $1::text[], array[1], array['{}'], null, null, null, null)",
      [names],
    );
  for (let round = 0; round < 25; round++) {
    const names = Array.from({ length: 30 }, (_, n) => `${round} ${n}`);
    await Promise.all(Array.from({ length: 8 }, () => add(shuffled(names, roll))));
  }
});
