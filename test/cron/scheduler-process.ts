import { setImmediate } from "node:timers/promises";
import pg from "pg";
import type { Clock } from "../../src/cron/clock.ts";
import { parseCrontab } from "../../src/cron/parse-crontab.ts";
import { startCron } from "../../src/cron/scheduler.ts";
import { poolDatabase } from "../../src/db/database.ts";
import type { Emit } from "../../src/events.ts";

const { crontab, from, until } = JSON.parse(process.env.SIMULATION ?? "{}") as Record<string, string>;

/** Whoever sleeps on this clock wakes at once, and the time has passed. */
let now = Date.parse(from ?? "");
const clock: Clock = {
  now: () => now,
  sleep: async (ms) => {
    now += ms;
    await setImmediate();
    if (now >= Date.parse(until ?? "")) void running.release();
  },
};

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 1 });
const items = parseCrontab(crontab ?? "");
const running = startCron({
  items: () => items,
  database: poolDatabase(pool, { schema: "graphile_worker", preparedStatements: true }),
  emit: Object.assign(() => undefined, { heard: () => false }) satisfies Emit,
  clock,
  onTrouble: ({ error }) => {
    console.error(error);
    process.exitCode = 1;
  },
});
await running.promise;
await pool.end();
