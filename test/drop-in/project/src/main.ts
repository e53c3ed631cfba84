import { readFile } from "node:fs/promises";
import { makeWorkerUtils, runMigrations, type WorkerUtils } from "graphile-worker";
import { addAll } from "./adding.js";
import preset from "./graphile.config.js";
import { runLists } from "./lists.js";
import { manage } from "./managing.js";
import { readCron, readTasks } from "./reading.js";
import { runAllOnce, runForAWhile } from "./running.js";
import { connectionString, here, lines, logger, pool } from "./surroundings.js";

/* Uses the library in every way that the documentation shows, and prints what came of it. */

await runMigrations({ connectionString, preset, logger });
await pool.query(await readFile(here("schema.sql"), "utf8"));
const utils: WorkerUtils = await makeWorkerUtils({ pgPool: pool, preset, logger });
await utils.migrate();

const report = {
  added: await addAll(utils),
  managed: await manage(utils),
  tasks: await readTasks(),
  cron: await readCron(),
  once: await runAllOnce(utils),
  run: await runForAWhile(),
  lists: await runLists(utils),
  effects: await effects(),
  left: await jobsLeft(),
  log: lines.map(withoutFigures).sort(),
};
await utils.release();
await pool.end();
console.log(JSON.stringify(report));

async function effects(): Promise<unknown[]> {
  const { rows } = await pool.query(
    "select task, attempt, payload, extra from app.effects order by task, attempt, payload::text",
  );
  return rows;
}

async function jobsLeft(): Promise<unknown[]> {
  const { rows } = await pool.query(`
    select task_identifier, queue_name, key, priority, attempts, max_attempts, revision, flags,
      last_error is not null as has_failed, locked_at is null as is_free, run_at > now() + interval '1 second' as is_later
    from graphile_worker.jobs order by task_identifier, key`);
  return rows;
}

/** First lines only: a stack names the files of the library. What an executable's failure is called is left open. */
function withoutFigures(line: string): string {
  return (line.split("\n")[0] ?? "")
    .replace(/\d+(\.\d+)?ms/g, "…ms")
    .replace(/task \d+/g, "task …")
    .replace(/(Failed task … \(convert.* with error).*/, "$1");
}
