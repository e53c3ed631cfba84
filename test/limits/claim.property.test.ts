import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { forSchema } from "../../src/db/statement.ts";
import { registerTasks } from "../../src/db/statements/claim.ts";
import {
  type ClaimLimitedParams,
  type ClaimLimitedRow,
  claimLimitedJobs,
  type Turns,
} from "../../src/db/statements/claim-limited.ts";
import { limitIndexText, listLimitIndexes } from "../../src/db/statements/limit-indexes.ts";
import { type DeclaredLimit, declareLimits } from "../../src/db/statements/limits.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { claimParams } from "./claim-params.ts";

vi.setConfig({ testTimeout: 120_000 });

const limit: DeclaredLimit = {
  scope: "task",
  name: "a",
  kind: "concurrency",
  path: [],
  places: 3,
  period_ms: null,
  burst: 0,
  weight: 1,
  weight_path: null,
  cost: 1,
  cost_path: null,
  tasks: ["a"],
};

type Database = ReturnType<typeof poolDatabase>;

async function prepare(): Promise<{ db: TestDatabase; database: Database; taskIds: number[] }> {
  const db = await freshDatabase();
  const database = poolDatabase(db.pool, { schema: db.schema } as never);
  const rows = await database.run(registerTasks, { identifiers: ["a", "b", "c"] });
  return { db, database, taskIds: ["a", "b", "c"].map((name) => rows.find((row) => row.identifier === name)!.id) };
}

async function declare(db: TestDatabase, database: Database, definitions: DeclaredLimit[], withIndexes = true) {
  await database.run(declareLimits, { tasks: ["a", "b", "c"], definitions, declaredBy: "test" });
  await db.query("update graphile_worker._hathi_limited_tasks set since = now() - interval '1 hour'");
  if (!withIndexes) return;
  for (const index of await database.run(listLimitIndexes, {})) {
    if (!index.is_valid) await db.query(forSchema(limitIndexText(index), db.schema));
  }
}

async function claim(
  database: Database,
  taskIds: readonly number[],
  wanted: number,
  more: Partial<ClaimLimitedParams> = {},
): Promise<{ row: ClaimLimitedRow; ids: number[] }> {
  const [row] = await database.run(claimLimitedJobs, { ...claimParams(taskIds, wanted), ...more });
  return { row: row!, ids: (JSON.parse(row!.jobs ?? "[]") as [string][]).map(([id]) => Number(id)) };
}

interface Row {
  id: number;
  task: string;
  t: string | null;
  r: string | null;
  q: number | null;
  locked: boolean;
  held: boolean;
}

const oddKeys = ["x", "", null, "7", "é", 'q"uote', "a\\b", "\u0001", "long".repeat(100), "-", "*", "="];

test.each(Array.from({ length: Number(process.env["SEEDS"] ?? 6) }, (_, seed) => seed + 1))(
  "claims never pass a limit, take all that limits allow, and keep named queues (seed %i)",
  async (seed) => {
    const roll = dice(seed * 7919);
    const upTo = (most: number): number => Math.floor(roll() * most);
    const pick = <T>(list: readonly T[]): T => list[upTo(list.length)]!;
    const { db, database, taskIds } = await prepare();
    const definitions = [
      ...(roll() < 0.6 ? [{ ...limit, places: upTo(6) }] : []),
      ...(roll() < 0.6 ? [{ ...limit, path: ["t"], places: 1 + upTo(3), weight: 1 + upTo(3) }] : []),
      ...(roll() < 0.3 ? [{ ...limit, path: ["r"], places: 1 + upTo(3) }] : []),
      ...(roll() < 0.5 ? [{ ...limit, scope: "shared" as const, name: "s", places: upTo(7), tasks: ["a", "b"] }] : []),
      ...(roll() < 0.5
        ? [{ ...limit, scope: "shared" as const, name: "k", path: ["t"], places: 1 + upTo(4), tasks: ["a", "b", "c"] }]
        : [{ ...limit, kind: "fair" as const, name: "c", path: ["t"], places: null, tasks: ["c"] }]),
    ];
    const jobs = Array.from({ length: 60 }, () => ({
      task: pick(["a", "b", "c"]),
      payload: { t: pick(oddKeys.slice(0, 3 + upTo(9))), r: pick(["x", "y", undefined]) },
      queue: roll() < 0.2 ? pick(["q1", "q2"]) : null,
      priority: upTo(2),
    }));
    await db.query(
      `select graphile_worker.add_job(job ->> 'task', job -> 'payload', queue_name => job ->> 'queue', priority => (job ->> 'priority')::int)
      from json_array_elements($1::json) as job`,
      [JSON.stringify(jobs)],
    );
    await declare(db, database, definitions, roll() < 0.85);

    const occupied = async (): Promise<Row[]> =>
      db.query<Row & Record<string, unknown>>(
        `select job.id::int as id, task.identifier as task, job.payload ->> 't' as t, job.payload ->> 'r' as r, job.job_queue_id as q,
          job.locked_at is not null as locked, false as held
        from graphile_worker._private_jobs as job join graphile_worker._private_tasks as task on task.id = job.task_id order by job.id`,
      ) as never;
    const keyIn = (row: Row, path: readonly string[]): string => {
      if (path.length === 0) return "*";
      const value = path[0] === "t" ? row.t : row.r;
      return value === null || value === "" ? "none" : `=${value}`;
    };
    const isFull = (rows: readonly Row[], row: Row): boolean =>
      definitions.some(
        ({ kind, tasks, path, places }) =>
          kind === "concurrency" &&
          tasks.includes(row.task) &&
          rows.filter((o) => o.locked && tasks.includes(o.task) && keyIn(o, path) === keyIn(row, path)).length >=
            places!,
      );

    const holder = new pg.Client(db.url);
    await holder.connect();
    onTestFinished(() => holder.end());
    let turns: Turns = {};
    for (let step = 0; step < 8; step++) {
      // Others hold some rows.
      await holder.query("begin");
      const held = new Set<number>();
      if (roll() < 0.4) {
        const { rows } = await holder.query(
          forSchema(
            "select id::int as id from graphile_worker._private_jobs where id % 5 = $1 for update skip locked",
            db.schema,
          ),
          [upTo(5)],
        );
        for (const { id } of rows) held.add(id);
      }
      const before = await occupied();
      const wanted = 1 + upTo(8);
      const ahead = upTo(3) === 0 ? upTo(8) : 0;
      const { row, ids } = await claim(database, taskIds, wanted, {
        turns,
        nth: step,
        ahead,
        // Whatever the pool believes.
        mayBeLate: upTo(2) === 0,
      });
      turns = row.turns;
      const rows = await occupied();
      expect(new Set(ids).size, "no job twice").toBe(ids.length);
      expect(ids.length).toBeLessThanOrEqual(wanted + ahead);
      for (const { kind, tasks, path, places } of definitions) {
        if (kind !== "concurrency") continue;
        const counts = new Map<string, number>();
        for (const one of rows) {
          if (one.locked && tasks.includes(one.task)) {
            counts.set(keyIn(one, path), (counts.get(keyIn(one, path)) ?? 0) + 1);
          }
        }
        for (const [key, count] of counts) expect(count, `${path.join(".")} ${key}`).toBeLessThanOrEqual(places!);
      }
      const queues = rows.filter((one) => one.locked && one.q !== null).map(({ q }) => q);
      expect(new Set(queues).size, "one job of a queue at a time").toBe(queues.length);
      // Tasks without limits are not for this claim.
      const limited = new Set(definitions.flatMap(({ tasks }) => tasks));
      for (const id of ids) expect(limited.has(rows.find((one) => one.id === id)!.task)).toBe(true);
      await holder.query("rollback");
      if (ids.length < wanted && held.size === 0 && row.due_in_ms === null) {
        // Head-of-line: only what is first of its key, or outside of any, has to be found.
        const isFirst = (one: Row): boolean =>
          !before.some(
            (o) => o.id < one.id && !o.locked && o.task === one.task && keyIn(o, ["t"]) === keyIn(one, ["t"]),
          );
        const left = rows.filter(
          (one) => !one.locked && one.q === null && limited.has(one.task) && isFirst(one) && !isFull(rows, one),
        );
        expect(left, `left behind at step ${step}`).toEqual([]);
      }
      // Some of them end.
      for (const one of rows) {
        if (one.locked && roll() < 0.5) {
          await db.query("delete from graphile_worker._private_jobs where id = $1", [one.id]);
          if (one.q !== null) {
            await db.query(
              "update graphile_worker._private_job_queues set locked_at = null, locked_by = null where id = $1",
              [one.q],
            );
          }
        }
      }
    }
  },
);

test("keys take turns by their weights, whichever pool asks and however few it asks for", async () => {
  const { db, database, taskIds } = await prepare();
  await declare(db, database, [{ ...limit, kind: "fair", path: ["t"], places: null, weight_path: ["w"] }]);
  const weights = { big: 5, middle: 2, small: 1 };
  for (const [t, w] of Object.entries(weights)) {
    await db.query(
      "insert into graphile_worker._private_jobs (task_id, payload) select $1, json_build_object('t', $2::text, 'w', $3::int) from generate_series(1, 400)",
      [taskIds[0], t, w],
    );
  }
  const counts: Record<string, number> = {};
  const turnsOf: Turns[] = [{}, {}, {}];
  const roll = dice(5);
  for (let n = 0; n < 400; ) {
    const pool = Math.floor(roll() * 3);
    const { row, ids } = await claim(database, taskIds, 1 + Math.floor(roll() * 4), { turns: turnsOf[pool]! });
    turnsOf[pool] = row.turns;
    n += ids.length;
    const rows = await db.query<{ t: string }>(
      "delete from graphile_worker._private_jobs where id = any ($1) returning payload ->> 't' as t",
      [ids],
    );
    for (const { t } of rows) counts[t] = (counts[t] ?? 0) + 1;
  }
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  for (const [t, w] of Object.entries(weights)) {
    expect(Math.abs(counts[t]! / total - w / 8), `share of ${t}: ${counts[t]} of ${total}`).toBeLessThan(
      0.05 * (w / 8) + 0.01,
    );
  }
});

test("over two hours of a tenant mix each tenant's share is within 5 % of its weight", async () => {
  const { db, database, taskIds } = await prepare();
  await declare(db, database, [
    { ...limit, places: 12 },
    { ...limit, kind: "fair", path: ["t"], places: null, weight_path: ["w"] },
  ]);
  const minute = 60_000;
  const from = Date.UTC(2030, 0, 1);
  const weights: Record<string, number> = { a: 1, b: 2, c: 3, d: 5, rest: 4 };
  // Everyone adds more than can run, the heaviest ten times as much; in the second hour `rest` has nothing.
  for (const [t, w] of Object.entries(weights)) {
    await db.query(
      `insert into graphile_worker._private_jobs (task_id, payload, run_at)
      select $1, json_build_object('t', $2::text, 'w', $3::int), $4::timestamptz + n * $5 * interval '1 second' from generate_series(1, $6::int) as n`,
      [taskIds[0], t, w, new Date(from - minute), t === "d" ? 1 : 6, t === "d" ? 7_000 : 1_100],
    );
  }
  const roll = dice(17);
  const turns: Turns[] = [{}, {}, {}];
  const running: { id: number; pool: number; endAt: number }[] = [];
  const started: Record<string, number>[] = [{}, {}];
  let now = from;
  while (now < from + 120 * minute) {
    const hour = now < from + 60 * minute ? 0 : 1;
    if (hour === 1 && Object.keys(started[1]!).length === 0) {
      await db.query("delete from graphile_worker._private_jobs where locked_at is null and payload ->> 't' = 'rest'");
    }
    for (let pool = 0; pool < 3; pool++) {
      const free = 5 - running.filter((one) => one.pool === pool).length;
      if (free <= 0) continue;
      const { row } = await claim(database, taskIds, free, { turns: turns[pool]!, clock: new Date(now) });
      turns[pool] = row.turns;
      for (const [id, , , { t }] of JSON.parse(row.jobs ?? "[]") as [string, null, number, { t: string }][]) {
        running.push({ id: Number(id), pool, endAt: now + 20_000 + roll() * 80_000 });
        started[hour]![t] = (started[hour]![t] ?? 0) + 1;
      }
    }
    expect(running.length, "no place is idle while work waits").toBe(12);
    running.sort((one, other) => one.endAt - other.endAt);
    const ended = running.splice(0, 1 + Math.floor(roll() * 8));
    now = Math.max(now, ended.at(-1)!.endAt);
    await db.query("delete from graphile_worker._private_jobs where id = any ($1)", [ended.map(({ id }) => id)]);
  }
  for (const [hour, counts] of started.entries()) {
    const present = Object.entries(weights).filter(([t]) => hour === 0 || t !== "rest");
    const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
    const sum = present.reduce((all, [, w]) => all + w, 0);
    for (const [t, w] of present) {
      expect(
        Math.abs(counts[t]! / total / (w / sum) - 1),
        `${t} in hour ${hour}: ${counts[t]} of ${total}`,
      ).toBeLessThan(0.05);
    }
  }
});

test("a rate is claimed ahead of free slots by half of the tokens that are there, and each job is charged", async () => {
  const { db, database, taskIds } = await prepare();
  const rate = { ...limit, kind: "rate" as const, places: 2_000, period_ms: 1_000_000, burst: 399 };
  await declare(db, database, [rate]);
  await db.query(
    "insert into graphile_worker._private_jobs (task_id, payload) select $1, '{}' from generate_series(1, 1000)",
    [taskIds[0]],
  );
  const spentUntil = async (): Promise<number> => {
    const [row] = await db.query<{ at: number }>(
      "select extract(epoch from tat)::float8 as at from graphile_worker._hathi_limit_rates",
    );
    return row!.at;
  };
  const first = await claim(database, taskIds, 10, { ahead: 1_000, timedAhead: 1_000 });
  expect(first.ids).toHaveLength(200);
  // The slack of the period, and what the burst gives.
  expect(JSON.parse(first.row.starts!)).toEqual([[0, 200, expect.any(Number), 0, 10_000 + 150, 0]]);
  const before = await spentUntil();
  const second = await claim(database, taskIds, 10, { ahead: 1_000, timedAhead: 40 });
  expect(second.ids).toHaveLength(50);
  // A token is due every 505 ms.
  expect(Math.round(((await spentUntil()) - before) / 0.505)).toBe(50);
  // Without an estimate of what would start in time, and when tokens are short, there are jobs for free slots only.
  expect((await claim(database, taskIds, 10, { ahead: 1_000 })).ids).toHaveLength(10);
  await claim(database, taskIds, 129); // a part of one more is in the lateness that the burst gives
  const last = await claim(database, taskIds, 12, { ahead: 1_000, timedAhead: 1_000 });
  expect(last.ids.length).toBeGreaterThanOrEqual(10);
  expect(last.ids.length).toBeLessThanOrEqual(12);
});

test("a claim reads little, however many jobs of one key wait and are blocked", async () => {
  const { db, database, taskIds } = await prepare();
  await declare(db, database, [
    { ...limit, places: 50 },
    { ...limit, path: ["t"], places: 2 },
  ]);
  await db.query(
    "insert into graphile_worker._private_jobs (task_id, payload) select $1, json_build_object('t', 'hot') from generate_series(1, 30000)",
    [taskIds[0]],
  );
  await db.query("analyze graphile_worker._private_jobs");
  await claim(database, taskIds, 2);
  await db.query("select graphile_worker.add_job('a', '{\"t\":\"new\"}')");
  const read = async (): Promise<number> => {
    await db.query("select pg_stat_force_next_flush()").catch(() => undefined);
    const [row] = await db.query<{ n: number }>(
      `select (coalesce(sum(idx_tup_read), 0))::int as n from pg_stat_user_indexes where relname = '_private_jobs'`,
    );
    return row!.n;
  };
  const client = await db.pool.connect();
  client.release();
  const before = await read();
  const { ids } = await claim(database, taskIds, 10);
  expect(ids).toEqual([30001]);
  await vi.waitFor(async () => expect(await read()).toBeGreaterThan(before), { timeout: 15_000 });
  expect((await read()) - before).toBeLessThan(400);
});
