import pg from "pg";
import { sleep } from "../../src/util/sleep.ts";
import type { Arena } from "./kit.ts";
import { now } from "./ledger.ts";

/*
 * Applications that change jobs by hand, in transactions that they keep open for up to two seconds and sometimes roll back. Each has keys and jobs
 * of its own, so it knows what became of them.
 */

export interface Meddlers {
  /** Jobs that were removed or ended by hand while they waited, and since when. They must not start afterwards. */
  readonly gone: ReadonlyMap<string, number>;
  /** What an application was refused, except for lost connections. */
  readonly failures: readonly string[];
  /** Ends them, and resolves when all have. */
  stop(): Promise<void>;
}

const count = 3;
/** The server is down, or has ended the session. */
const lost = /^(57P|08|53)/;

/** What a transaction has done, for when it is known to be committed. */
interface Deeds {
  /** Jobs of which we know nothing if the answer to the commit is lost. */
  readonly touched: string[];
  readonly effects: (() => void)[];
}

export function startMeddlers(arena: Arena, url: string): Meddlers {
  const gone = new Map<string, number>();
  const failures: string[] = [];
  let isOver = false;

  const meddle = async (nth: number): Promise<void> => {
    const idByKey = new Map<string, string>();
    let jobs: string[] = [];
    let client: pg.Client | undefined;
    const ask = async (text: string, values: unknown[] = []): Promise<{ id: string; locked_at: Date | null }[]> =>
      (await client!.query(text, values)).rows;

    const addKeyed = async (key: string, { touched, effects }: Deeds): Promise<void> => {
      const [job] = await ask(
        "select id from graphile_worker.add_job('work', $1::json, queue_name => $2, job_key => $3)",
        [JSON.stringify({ ms: arena.any(4) ? 0 : 150 }), arena.any(2) ? `queue ${arena.any(6)}` : null, key],
      );
      const before = idByKey.get(key);
      if (before !== undefined) touched.push(before);
      effects.push(() => {
        // The one before was running, and is not to run again.
        if (before !== undefined && before !== job!.id) arena.release(before);
        idByKey.set(key, job!.id);
        arena.want(job!.id);
      });
    };
    const end = async (text: string, values: unknown[], { touched, effects }: Deeds): Promise<void> => {
      for (const { id, locked_at } of await ask(text, values)) {
        touched.push(id);
        effects.push(() => {
          arena.release(id);
          if (locked_at === null) gone.set(id, now());
        });
      }
    };
    const changeKeys = async (deeds: Deeds): Promise<void> => {
      // In one order, as applications do that want no deadlock among themselves.
      const keys = new Set(Array.from({ length: 1 + arena.any(3) }, () => `key ${nth} ${arena.any(5)}`));
      for (const key of [...keys].sort()) {
        if (arena.any(3)) await addKeyed(key, deeds);
        else await end("select id, locked_at from graphile_worker.remove_job($1) where id is not null", [key], deeds);
      }
    };
    const changeJobs = async (deeds: Deeds): Promise<void> => {
      const some = jobs.length > 0 ? [arena.pick(jobs), arena.pick(jobs), arena.pick(jobs)] : [];
      const inMs = arena.any(3) ? 0 : arena.any(2_000);
      const ways = [
        () => end("select id, null as locked_at from graphile_worker.complete_jobs($1)", [some], deeds),
        () =>
          end("select id, null as locked_at from graphile_worker.permanently_fail_jobs($1, 'by hand')", [some], deeds),
        () => ask("select graphile_worker.reschedule_jobs($1, run_at => now() + $2 * interval '1 ms')", [some, inMs]),
        () => ask("select from graphile_worker._private_jobs where id % 7 = $1 for update skip locked", [arena.any(7)]),
        () =>
          ask("select from graphile_worker._private_job_queues where id % 3 = $1 for update skip locked", [
            arena.any(3),
          ]),
        () => Promise.resolve(),
      ];
      await arena.pick(ways)();
    };

    while (!isOver) {
      const deeds: Deeds = { touched: [], effects: [] };
      try {
        client ??= await connect(url);
        if (arena.any(3) === 0) jobs = await arena.add(Array.from({ length: 8 }, () => ({ ms: arena.any(60) })));
        await ask("begin");
        await changeKeys(deeds);
        await changeJobs(deeds);
        await sleep(arena.any(3) ? arena.any(20) : arena.any(2_000));
        const isKept = arena.any(5) > 0;
        await ask(isKept ? "commit" : "rollback");
        if (isKept) for (const effect of deeds.effects) effect();
      } catch (error) {
        for (const id of [...deeds.touched, ...idByKey.values()]) arena.release(id);
        idByKey.clear();
        const { code, message, detail } = error as pg.DatabaseError;
        if (code !== undefined && !lost.test(code) && !/^E[A-Z]+$/.test(code))
          failures.push(`${code} ${message} ${detail}`);
        await client?.end().catch(() => undefined);
        client = undefined;
        await sleep(100);
      }
    }
    await client?.end().catch(() => undefined);
  };
  const all = Array.from({ length: count }, (_, nth) => meddle(nth));
  return {
    gone,
    failures,
    stop: async () => {
      isOver = true;
      await Promise.all(all);
    },
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: "meddler" });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
