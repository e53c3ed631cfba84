import { expect, test, vi } from "vitest";
import { utilsOf } from "../control/kit.ts";
import { freshDatabase } from "../support/database.ts";
import { runProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

vi.setConfig({ testTimeout: 90_000 });

test("what was set for a limit and for a key outlives the workers, whose code declares something else again", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const options = {
    connectionString: db.url,
    concurrency: 10,
    taskOptions: { hold: { concurrency: [{ limit: 9 }, { limit: 1, key: "t" }] } },
  };
  const first = await startWorker(options);
  await until(async () => (await utils.listLimits()).length === 2);
  await utils.setLimit("hold", { limit: 5 });
  await utils.setLimit("hold", { key: "acme", limit: 3, weight: 2 });
  await first.stop();

  const second = await startWorker(options);
  await db.query(
    `select graphile_worker.add_job('hold', json_build_object('t', t)) from unnest(array['acme', 'other']) as t, generate_series(1, 6)`,
  );
  await until(() => second.holds().length === 4);
  await db.query("select graphile_worker.add_job('hold', json_build_object('t', t)) from unnest(array['b', 'c']) as t");
  await until(() => second.holds().length === 5);
  const held = await db.query<{ t: string; n: number }>(
    `select payload ->> 't' as t, count(*)::int as n from graphile_worker._private_jobs where locked_at is not null group by 1 order by 1`,
  );
  // Five of the whole task, three of acme, one of every other key.
  expect(held.filter(({ t }) => t === "acme")).toEqual([{ t: "acme", n: 3 }]);
  expect(held.filter(({ t, n }) => t !== "acme" && n > 1)).toEqual([]);
  expect(await utils.listLimits()).toMatchObject([
    { name: "hold", limit: 5, running: 5 },
    { name: "hold", limit: 1, overrides: [{ key: "acme", limit: 3, weight: 2 }] },
  ]);
  const { folder } = await makeProject();
  const { stdout } = await runProgram(["limits"], { cwd: folder, env: { DATABASE_URL: db.url } });
  expect(stdout).toMatch(/\bacme\b.*\b3\b/);
  second.release();
  await until(async () => (await db.jobs()).length === 0);
});
