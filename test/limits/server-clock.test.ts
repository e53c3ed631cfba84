import { expect, test, vi } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import { hasProgram } from "../support/has-program.ts";
import { startShiftingServer } from "../support/shifting-server.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { checkCommits } from "./commit-check.ts";

vi.setConfig({ testTimeout: 120_000 });

const hour = 3_600;

test.skipIf(!hasProgram("faketime"))(
  "limits hold, and go on to admit jobs, while the server's clock is set forward and back by hours",
  async () => {
    const server = await startShiftingServer();
    const pool = testPool(server.url);
    pool.on("connect", () => undefined);
    const query = async (text: string, values?: unknown[]) => (await pool.query(text, values)).rows;
    const db = { url: server.url, schema: "graphile_worker", query } as unknown as TestDatabase;
    const utils = await makeWorkerUtils({ pgPool: pool });
    await utils.migrate();
    const check = await checkCommits(db, [
      { tasks: ["sync"], places: 3 },
      { tasks: ["sync"], key: "k", places: 1 },
    ]);
    const ran: Record<string, number> = { sync: 0, call: 0, keyed: 0 };
    const names = Object.keys(ran);
    const tasks = Object.fromEntries(names.map((name) => [name, () => void ran[name]!++]));
    const options = {
      concurrency: 6,
      pollInterval: 200,
      taskOptions: {
        sync: { concurrency: [{ limit: 3 }, { limit: 1, key: "k" }] },
        call: { rateLimit: { limit: 40, period: "1s" } },
        keyed: { rateLimit: { limit: 20, period: "1s", burst: 2, key: "k" } },
      },
    };
    const workers = [await startWorker(db, tasks, options), await startWorker(db, tasks, options)];
    let added = 0;
    for (const clock of [0, -hour, 5 * hour, -hour, -2 * hour, 0]) {
      server.setClock(clock);
      const [row] = await db.query<{ s: number }>("select extract(epoch from clock_timestamp())::float8 as s");
      expect(Math.abs(row!.s - Date.now() / 1_000 - clock), "the clock is set").toBeLessThan(hour / 2);
      await db.query(
        `select graphile_worker.add_job(task, json_build_object('k', 'k' || n % 4))
        from generate_series(1, 12) as n, unnest($1::text[]) as task`,
        [names],
      );
      added += 12;
      await until(() => names.every((name) => ran[name]! >= added), {
        what: `all jobs run with the clock at ${clock} s`,
      });
    }
    expect(await check.above()).toEqual([]);
    expect(await check.commits()).toBeGreaterThan(10);
    for (const { runner } of workers) await runner.stop();
    await utils.release();
  },
);
