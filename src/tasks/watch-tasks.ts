import { toError } from "../errors.ts";
import type { FileDetails } from "../hooks.ts";
import { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import { type PathWatch, watchPath } from "../util/watch-path.ts";
import { type LoadTask, loadTasks, warnOfNoTask } from "./load-tasks.ts";
import { loadTaskListFile } from "./module-tasks.ts";
import { findTaskFiles, statTaskPath } from "./task-files.ts";

export interface WatchTasksOptions {
  /** A folder or a single file, as for `loadTasks`. */
  readonly taskPath: string;
  readonly loadTask: LoadTask;
  readonly logger: Logger;
}

export interface FollowedTasks extends Omit<PathWatch, "follow"> {
  /** Changed in place, so that whoever looks a task up finds its newest version. */
  readonly tasks: TaskList;
  /** From now on, keeps the tasks in step with their files; `onNamesChanged` is told when there are others than before. */
  follow(onNamesChanged: () => void): void;
}

/**
 * Loads tasks, and can keep them in step with their files from then on. A changed file counts from the next job on; a broken
 * one is reported, and the last version that worked stays.
 */
export async function watchTasks(options: WatchTasksOptions): Promise<FollowedTasks> {
  const { taskPath, loadTask, logger } = options;
  const isFile = (await statTaskPath(taskPath)).isFile();
  // In this order, a change at any moment is either loaded or noticed.
  const watch = await watchPath(taskPath);
  const stamps = isFile ? undefined : await stampsOf(taskPath);
  const tasks = await loadTasks(taskPath, loadTask, logger);
  const reload = stamps ? makeReloadFolder(options, tasks, stamps) : () => reloadFile(options, tasks);
  const follow = (onNamesChanged: () => void): void =>
    watch.follow(async () => {
      const before = namesOf(tasks);
      try {
        await reload();
        if (namesOf(tasks) !== before) onNamesChanged();
      } catch (error) {
        logger.error(`${toError(error).message} The last version that worked stays.`, { error });
      }
    });
  return { tasks, follow, stop: () => watch.stop() };
}

function namesOf(tasks: TaskList): string {
  return JSON.stringify(Object.keys(tasks).sort());
}

async function reloadFile({ taskPath, logger }: WatchTasksOptions, tasks: TaskList): Promise<void> {
  const fresh = await loadTaskListFile(taskPath, logger);
  for (const name of Object.keys(tasks)) if (!(name in fresh)) delete tasks[name];
  Object.assign(tasks, fresh);
  logger.info(`Reloaded the tasks of '${taskPath}'.`);
}

function makeReloadFolder(
  { taskPath, loadTask, logger }: WatchTasksOptions,
  tasks: TaskList,
  stamps: ReadonlyMap<string, string>,
): () => Promise<void> {
  let known = stamps;
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

async function stampsOf(folder: string): Promise<Map<string, string>> {
  // Loading says which files are left out; once is enough.
  const silent = new Logger(() => () => undefined);
  return new Map([...(await findTaskFiles(folder, silent))].map(([name, files]) => [name, stampOf(files)]));
}

/** A file that was saved again, or made executable, is a new version. */
function stampOf(files: readonly FileDetails[]): string {
  return files.map(({ fullPath, stats }) => `${fullPath}:${stats.mtimeMs}:${stats.size}:${stats.mode}`).join();
}
