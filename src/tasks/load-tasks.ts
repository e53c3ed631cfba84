import type { FileDetails } from "../hooks/plugin.ts";
import type { Logger } from "../logger.ts";
import type { Task, TaskList } from "../task.ts";
import { loadTaskListFile } from "./module-tasks.ts";
import { findTaskFiles, statTaskPath } from "./task-files.ts";

/** Makes a task of its files, or gives nothing if none of them is one. */
export type LoadTask = (identifier: string, files: readonly FileDetails[]) => Promise<Task | undefined>;

/** All tasks of a folder, or of a single file. The first file that is broken ends it. */
export async function loadTasks(taskPath: string, loadTask: LoadTask, logger: Logger): Promise<TaskList> {
  const stats = await statTaskPath(taskPath);
  if (stats.isFile()) return loadTaskListFile(taskPath, logger);
  const tasks: TaskList = {};
  for (const [identifier, files] of await findTaskFiles(taskPath, logger)) {
    const task = await loadTask(identifier, files);
    if (task) tasks[identifier] = task;
    else warnOfNoTask(identifier, files, logger);
  }
  return tasks;
}

export function warnOfNoTask(identifier: string, files: readonly FileDetails[], logger: Logger): void {
  const names = files.map((file) => `'${file.fullPath}'`).join(", ");
  logger.warn(`No task for '${identifier}': no loader takes ${names}.`);
}
