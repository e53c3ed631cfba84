import type { SharedOptions } from "../config/options.ts";
import type { LoadTaskFromFilesEvent, Writeable } from "../hooks/plugin.ts";
import type { TaskList } from "../task.ts";
import { type LoadTask, loadTasks } from "../tasks/load-tasks.ts";
import { type CompiledSharedOptions, compileSharedOptions } from "./compile.ts";

/** Tasks loaded from files. */
export interface WatchedTaskList {
  tasks: TaskList;
  release: () => Promise<void>;
  compiledSharedOptions: CompiledSharedOptions;
}

/** Loads the tasks of a folder or of a single file; without a path, of the option `taskDirectory`. It does not watch for changes; `release` does nothing. */
export async function getTasks(options: SharedOptions, taskPath?: string): Promise<WatchedTaskList> {
  const compiledSharedOptions = compileSharedOptions(options);
  const { logger, settings } = compiledSharedOptions;
  const tasks = await loadTasks(taskPath ?? settings.taskDirectory, makeLoadTask(compiledSharedOptions), logger);
  return { tasks, release: async () => undefined, compiledSharedOptions };
}

/** Asks the plugins, one after the other, until one of them makes a task of the files. */
export function makeLoadTask({ hooks }: CompiledSharedOptions<object>): LoadTask {
  return async (taskIdentifier, fileDetailsList) => {
    const event: Writeable<LoadTaskFromFilesEvent> = { taskIdentifier, fileDetailsList };
    await hooks.process("loadTaskFromFiles", event);
    return event.handler;
  };
}
