import type { RunningCron } from "../cron/scheduler.ts";
import { toError } from "../errors.ts";
import { watchTasks } from "../tasks/watch-tasks.ts";
import { watchPath } from "../util/watch-path.ts";
import type { Runner } from "../worker.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";
import { findCronItems } from "./cron-items.ts";
import { makeLoadTask } from "./get-tasks.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { openDatabase, workerIdleMs } from "./open-database.ts";
import { startRunner } from "./run.ts";
import type { RunnerOptions } from "./runner-options.ts";

/** Like `run`, but reloads task files and the crontab when they change. For development. */
export async function runWatching(options: RunnerOptions): Promise<Runner> {
  const compiled = compileSharedOptions(options);
  const { taskDirectory: taskPath, crontabFile } = compiled.settings;
  const logger = compiled.safeLogger.scope({ label: "watch" });
  const open = openDatabase(compiled, { idleMs: workerIdleMs });
  try {
    await migrateSchema(open.database, compiled.ctx);
    const files = await watchTasks({ taskPath, loadTask: makeLoadTask(compiled), logger });
    const crontab = await watchPath(crontabFile);
    const cronItems = await findCronItems(compiled);
    const { runner, pool, cron } = startRunner(compiled, open, files.tasks, cronItems);
    files.follow(() => pool.refreshTasks());
    crontab.follow(() => reloadCrontab(compiled, cron));
    const stopWatching = (): void => {
      for (const watch of [files, crontab]) void watch.stop();
    };
    runner.promise.then(stopWatching, stopWatching);
    logger.info(`Watching '${taskPath}' and '${crontabFile}' for changes.`);
    return runner;
  } catch (error) {
    await open.release();
    throw error;
  }
}

async function reloadCrontab(compiled: CompiledSharedOptions<RunnerOptions>, cron: RunningCron): Promise<void> {
  const logger = compiled.safeLogger.scope({ label: "watch" });
  try {
    const items = (await findCronItems(compiled))();
    await cron.replaceItems(items);
    logger.info(`Reloaded the crontab: ${items.length} ${items.length === 1 ? "entry" : "entries"}.`);
  } catch (error) {
    logger.error(`${toError(error).message}\nThe last crontab that worked stays.`, { error });
  }
}
