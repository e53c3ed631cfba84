import { expect, test } from "vitest";
import { type GuardOptions, Logger, makeWorkerUtils, run } from "../../src/index.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, testPool } from "../support/database.ts";
import { dice } from "../support/dice.ts";

const silent = new Logger(() => () => undefined);

/** Each guard has keys of its own, so that the invariants of one kind can be told from its payloads. */
const specs: Record<string, (key: string) => GuardOptions> = {
  debounce: (key) => ({ debounce: { key, delay: 3, maxWait: 6 } }),
  throttle: (key) => ({ throttle: { key, period: 25 } }),
  skip: (key) => ({ singleton: { key } }),
  replace: (key) => ({ singleton: { key, onConflict: "replace" } }),
  cancelRunning: (key) => ({ singleton: { key, onConflict: "cancelRunning" } }),
};
const kinds = Object.keys(specs);

/**
 * Checked as each transaction commits: whoever comes later waited for the guard and sees the other. What was written is kept in the order in
 * which it was written, as far as it was committed.
 */
const watch = `
  create table log (nth bigint generated always as identity, kind text, key text, n integer, run_at timestamptz, moment timestamptz);
  create function check_guards() returns trigger language plpgsql as $$
  declare
    kind text := new.payload ->> 'kind';
    waiting integer;
    running integer;
  begin
    select count(*) filter (where is_available), count(*) filter (where locked_at is not null) into waiting, running
    from graphile_worker._private_jobs
    where payload ->> 'kind' = kind and payload ->> 'key' = new.payload ->> 'key';
    if kind <> 'throttle' and waiting > 1 then raise exception '% jobs of one % key wait', waiting, kind; end if;
    if kind = 'skip' and waiting + running > 1 then raise exception '% jobs of one % key', waiting + running, kind; end if;
    return null;
  end $$;
  create constraint trigger checked after insert or update on graphile_worker._private_jobs deferrable initially deferred
    for each row execute function check_guards();
  create function log_write() returns trigger language plpgsql as $$
  begin
    insert into public.log (kind, key, n, run_at, moment)
    values (new.payload ->> 'kind', new.payload ->> 'key', (new.payload ->> 'n')::integer, new.run_at, clock_timestamp());
    return null;
  end $$;
  create trigger added after insert on graphile_worker._private_jobs for each row execute function log_write();
  create trigger changed after update of payload on graphile_worker._private_jobs for each row
    when (new.revision > old.revision) execute function log_write();
  create table periods (key text, since timestamptz);
  create function log_period() returns trigger language plpgsql as $$
  begin insert into public.periods values (new.key, new.since); return null; end $$;
  create trigger passed after update on graphile_worker._hathi_add_guards for each row
    when (new.kind = 'throttle') execute function log_period();`;

test.each([1, 2])(
  "guards hold while several processes add, run, fail, cancel and roll back (seed %i)",
  async (seed) => {
    const db = await freshDatabase();
    const roll = dice(seed);
    await db.query(watch);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(roll() * list.length)]!;
    let isOver = false;
    let n = 0;

    const add = async (): Promise<void> => {
      const utils = await makeWorkerUtils({ pgPool: testPool(db.url, 2), logger: silent }, { migrate: false });
      for (let turn = 0; turn < 80; turn++) {
        const jobs = Array.from({ length: roll() < 0.2 ? 3 : 1 }, () => {
          const kind = pick(kinds);
          const key = `${kind} ${pick(["a", "b"])}`;
          return { payload: { kind, key, n: ++n }, guard: specs[kind]!(key) };
        });
        const isRolledBack = roll() < 0.15;
        await utils
          .transaction(async (inside) => {
            if (jobs.length === 1) await inside.addJob("greet", jobs[0]!.payload, jobs[0]!.guard);
            else await inside.addJobs(jobs.map(({ payload, guard }) => ({ identifier: "greet", payload, ...guard })));
            if (isRolledBack) throw new Error("rolled back");
          })
          .catch((error: Error) => {
            if (error.message !== "rolled back") throw error;
          });
      }
      await utils.release();
    };

    const adding = Promise.all([add(), add(), add(), add()]).finally(() => {
      isOver = true;
    });

    const running = new Map<string, string>();
    const overlaps: string[] = [];
    const work = async (): Promise<void> => {
      const runner = await run({
        pgPool: testPool(db.url, 4),
        concurrency: 3,
        logger: silent,
        noHandleSignals: true,
        taskOptions: { greet: { backoff: { type: "fixed", delay: 1 } } },
        taskList: {
          greet: async ({ kind, key }: { kind: string; key: string }, { job }) => {
            const isExclusive = kind !== "debounce" && kind !== "throttle";
            if (isExclusive && running.has(key)) overlaps.push(`${job.id} beside ${running.get(key)} of ${key}`);
            running.set(key, job.id);
            if (roll() < 0.7) await sleep(roll() * 20);
            running.delete(key);
            if (roll() < 0.3) throw new Error("no");
          },
        },
      });
      await Promise.allSettled([adding]);
      await runner.stop();
    };

    const disturb = async (): Promise<void> => {
      while (!isOver) {
        const ids = (await db.jobs()).map(({ id }) => id);
        const id = pick(ids) ?? "0";
        const name = pick(["cancel_jobs", "complete_jobs", "permanently_fail_jobs"]);
        await db.query(`select graphile_worker.${name}(array[$1::bigint])`, [id]);
        await db.query(
          "update graphile_worker._hathi_add_guards set expires_at = 'epoch' where kind <> 'throttle' and key = $1",
          [`${pick(kinds)} a`],
        );
        await db.query("select graphile_worker._hathi_tidy_guards(2)");
      }
    };

    await Promise.all([adding, work(), work(), disturb()]);
    expect(overlaps).toEqual([]);

    const tooEarly = await db.query(
      `select * from (select since - lag(since) over (partition by key order by since) as rest from periods) as two
     where rest < interval '25 milliseconds'`,
    );
    expect(tooEarly).toEqual([]);
    expect((await db.query("select key from periods")).length).toBeGreaterThan(4);
    // What waits at the end is what was written last, and no job falls due after its promise.
    const waiting = await db.query<{ kind: string; key: string; n: string }>(
      `select payload ->> 'kind' as kind, payload ->> 'key' as key, payload ->> 'n' as n
     from graphile_worker._private_jobs where is_available and payload ->> 'kind' in ('debounce', 'replace', 'cancelRunning')`,
    );
    for (const { kind, key, n: found } of waiting) {
      const [last] = await db.query("select n from log where kind = $1 and key = $2 order by nth desc limit 1", [
        kind,
        key,
      ]);
      expect({ kind, key, n: Number(found) }).toEqual({ kind, key, n: last?.n });
    }
    expect(
      await db.query("select from log where kind = 'debounce' and run_at > moment + interval '6 milliseconds'"),
    ).toEqual([]);
  },
  60_000,
);
