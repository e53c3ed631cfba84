import { toError } from "../errors.ts";
import type { FileDetails } from "../hooks/plugin.ts";
import { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import { type PathWatch, watchPath } from "../util/watch-path.ts";
import { forgetFiles } from "./import-file.ts";
import { filesAffected, type ImportGraph, readImportGraph } from "./import-graph.ts";
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
  /** From now on, keeps the tasks in step with their files; `onNamesChanged` is called when the names have changed. */
  follow(onNamesChanged: () => void): void;
}

/**
 * Loads tasks, and can keep them in step with their files, and with what those import, from then on. A changed file counts from the
 * next job on; a broken one is reported, and the last version that worked stays.
 */
export async function watchTasks(options: WatchTasksOptions): Promise<FollowedTasks> {
  const { taskPath, loadTask, logger } = options;
  const isFile = (await statTaskPath(taskPath)).isFile();
  const listFiles = isFile ? async () => new Map([["", [taskPath]]]) : () => listTaskFiles(taskPath);
  const readGraph = async (): Promise<ImportGraph> => readImportGraph([...(await listFiles()).values()].flat());
  // In this order, a change at any moment is either loaded or noticed.
  const watch = await watchPath(taskPath, async () => [...(await readGraph()).keys()]);
  let [names, graph] = [await listFiles(), await readGraph()];
  const tasks = await loadTasks(taskPath, loadTask, logger);
  const reload = isFile ? () => reloadFile(options, tasks) : makeReloadFolder(options, tasks);

  const follow = (onNamesChanged: () => void): void =>
    watch.follow(async () => {
      const before = namesOf(tasks);
      try {
        const [lastNames, lastGraph] = [names, graph];
        [names, graph] = [await listFiles(), await readGraph()];
        const affected = filesAffected(lastGraph, graph);
        // A task file on its own is simply loaded again; only what imports something that has changed must be forgotten.
        forgetFiles([...affected].filter((file) => graph.get(file)?.imports.some((path) => affected.has(path))));
        forgetFiles([...affected].filter((file) => ![...names.values()].flat().includes(file)));
        const changed = [...names].filter(
          ([name, files]) => files.some((file) => affected.has(file)) || !lastNames.has(name),
        );
        const gone = [...lastNames.keys()].filter((name) => !names.has(name));
        await reload(new Set(changed.map(([name]) => name)), gone);
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
): (changed: ReadonlySet<string>, gone: readonly string[]) => Promise<void> {
  return async (changed, gone) => {
    for (const name of gone) {
      if (name in tasks) logger.info(`Task '${name}' is gone.`);
      delete tasks[name];
    }
    for (const [name, list] of await findTaskFiles(taskPath, silent)) {
      if (changed.has(name)) await reloadTask(name, list);
    }
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

// Loading says which files are left out; once is enough.
const silent = new Logger(() => () => undefined);

async function listTaskFiles(folder: string): Promise<Map<string, string[]>> {
  const files = await findTaskFiles(folder, silent).catch(() => new Map<string, readonly FileDetails[]>());
  return new Map([...files].map(([name, list]) => [name, list.map(({ fullPath }) => fullPath)]));
}
