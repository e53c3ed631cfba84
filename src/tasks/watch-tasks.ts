import { stat } from "node:fs/promises";
import { toError } from "../errors.ts";
import type { FileDetails } from "../hooks.ts";
import type { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import { type PathWatch, watchPath } from "../util/watch-path.ts";
import { type LoadTask, warnOfNoTask } from "./load-tasks.ts";
import { loadTaskListFile } from "./module-tasks.ts";
import { findTaskFiles } from "./task-files.ts";

export interface WatchTasksOptions {
  /** A folder or a single file, as for `loadTasks`. */
  readonly taskPath: string;
  /** What `loadTasks` gave; changed in place, so that whoever looks a task up finds its newest version. */
  readonly tasks: TaskList;
  readonly loadTask: LoadTask;
  readonly logger: Logger;
  /** Called when the names of the tasks are not the same as before. */
  readonly onNamesChanged: () => Promise<void>;
}

/**
 * Keeps a task list in step with its files. A changed file counts from the next job on; a broken one is reported, and the
 * last version that worked stays.
 */
export async function watchTasks(options: WatchTasksOptions): Promise<PathWatch> {
  const { taskPath, tasks, logger, onNamesChanged } = options;
  const isFile = (await stat(taskPath)).isFile();
  const reload = isFile ? () => reloadFile(options) : await makeReloadFolder(options);
  return watchPath(taskPath, async () => {
    const before = namesOf(tasks);
    try {
      await reload();
      if (namesOf(tasks) !== before) await onNamesChanged();
    } catch (error) {
      logger.error(`${toError(error).message} Still running the last version that worked.`, { error });
    }
  });
}

function namesOf(tasks: TaskList): string {
  return JSON.stringify(Object.keys(tasks).sort());
}

async function reloadFile({ taskPath, tasks, logger }: WatchTasksOptions): Promise<void> {
  const fresh = await loadTaskListFile(taskPath, logger);
  for (const name of Object.keys(tasks)) if (!(name in fresh)) delete tasks[name];
  Object.assign(tasks, fresh);
  logger.info(`Reloaded the tasks of '${taskPath}'.`);
}

async function makeReloadFolder({
  taskPath,
  tasks,
  loadTask,
  logger,
}: WatchTasksOptions): Promise<() => Promise<void>> {
  let known = await stampsOf(taskPath, logger);
  return async () => {
    const files = await findTaskFiles(taskPath, logger);
    const current = new Map([...files].map(([name, list]) => [name, stampOf(list)]));
    for (const name of known.keys()) {
      if (current.has(name)) continue;
      if (name in tasks) logger.info(`Task '${name}' is gone.`);
      delete tasks[name];
    }
    for (const [name, list] of files) {
      if (known.get(name) !== current.get(name)) await reloadTask(name, list);
    }
    known = current;
  };

  async function reloadTask(name: string, files: readonly FileDetails[]): Promise<void> {
    try {
      const task = await loadTask(name, files);
      if (!task) return warnOfNoTask(name, files, logger);
      const verb = name in tasks ? "Reloaded" : "Loaded";
      tasks[name] = task;
      logger.info(`${verb} task '${name}'.`);
    } catch (error) {
      const kept = name in tasks ? " The last version that worked stays." : "";
      logger.error(`${toError(error).message}${kept}`, { error });
    }
  }
}

async function stampsOf(folder: string, logger: Logger): Promise<Map<string, string>> {
  return new Map([...(await findTaskFiles(folder, logger))].map(([name, files]) => [name, stampOf(files)]));
}

/** A file that was saved again, or made executable, is a new version. */
function stampOf(files: readonly FileDetails[]): string {
  return files.map(({ fullPath, stats }) => `${fullPath}:${stats.mtimeMs}:${stats.size}:${stats.mode}`).join();
}
