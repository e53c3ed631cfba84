import { expect, test } from "vitest";
import type { Database } from "../../src/db/database.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { type CronBench, cronBench } from "./scheduler-kit.ts";

interface Breakable {
  readonly database: Database;
  away: boolean;
}

/** A database that can be cut off. */
function breakable(bench: CronBench): Breakable {
  const real = poolDatabase(testPool(bench.db.url, 2), { schema: bench.db.schema, preparedStatements: true });
  const state: Breakable = {
    away: false,
    database: {
      ...real,
      run: async (statement, params) => {
        if (state.away) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
        return real.run(statement, params);
      },
      until: () => state.database,
    },
  };
  return state;
}

test("an unreachable database is asked again with growing pauses, and cron goes on when it is back", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const link = breakable(bench);
  link.away = true;
  const { cron, troubles } = bench.start(["* * * * * task"], { database: link.database });
  await bench.clock.advanceTo("2026-01-01T01:00:00Z");
  expect(cron._active).toBe(true);
  troubles.forEach(({ retryInMs }, attempt) => {
    const ms = Math.min(200 * 1.5 ** attempt, 5_000);
    expect(retryInMs).toBeGreaterThanOrEqual(ms * 0.5);
    expect(retryInMs).toBeLessThanOrEqual(ms * 1.5);
  });
  expect(troubles.length).toBeGreaterThan(40);

  link.away = false;
  await bench.clock.advanceTo("2026-01-01T01:03:30Z");
  expect((await bench.runs()).at(-1)).toBe("2026-01-01T01:03:00");
});

test("after an outage, entries with 'fill' get what they missed, others go on from there", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const link = breakable(bench);
  bench.start(["*/10 * * * * filled ?fill=1d\n*/10 * * * * task"], { database: link.database });
  await bench.clock.advanceTo("2026-01-01T00:15:00Z");
  link.away = true;
  await bench.clock.advanceTo("2026-01-01T00:45:00Z");
  link.away = false;
  await bench.clock.advanceTo("2026-01-01T00:55:00Z");
  expect((await bench.runs("filled")).map((run) => run.slice(14))).toEqual([
    "10:00",
    "20:00*",
    "30:00*",
    "40:00*",
    "50:00",
  ]);
  expect((await bench.runs()).map((run) => run.slice(14))).toEqual(["10:00", "50:00"]);
});

test("a fault that is over before the minute is loses no run", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const link = breakable(bench);
  const { troubles } = bench.start(["* * * * * task"], { database: link.database });
  await bench.clock.advanceTo("2026-01-01T00:00:59Z");
  link.away = true;
  await bench.clock.advanceTo("2026-01-01T00:01:10Z");
  link.away = false;
  await bench.clock.advanceTo("2026-01-01T00:01:40Z");
  expect(troubles.length).toBeGreaterThan(0);
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00"]);
});

test("connections that the server cuts are replaced", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const { troubles } = bench.start(["* * * * * task"]);
  await bench.clock.advanceTo("2026-01-01T00:01:30Z");
  await bench.db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  await bench.clock.advanceTo("2026-01-01T00:02:50Z");
  expect(troubles.every(({ retryInMs }) => retryInMs !== undefined)).toBe(true);
  expect(await bench.runs()).toEqual(["2026-01-01T00:01:00", "2026-01-01T00:02:00"]);
});

test("release does not wait for an unreachable database", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const link = breakable(bench);
  link.away = true;
  const { cron } = bench.start(["* * * * * task"], { database: link.database });
  await bench.clock.asleep(1);
  await cron.release();
});

test("release does not wait for a connection that others keep", async () => {
  const bench = await cronBench("2026-01-01T00:00:30Z");
  const pool = testPool(bench.db.url, 1);
  const others = await pool.connect();
  const { cron, troubles } = bench.start(["* * * * * task"], { pool });
  await until(() => pool.waitingCount > 0, { what: "cron waits for a connection" });
  await cron.release();
  expect(troubles).toEqual([]);
  others.release();
});
