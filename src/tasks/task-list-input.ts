import { ConfigError } from "../errors.ts";
import type { TaskList } from "../task.ts";
import { type AnyTaskDefinition, isTaskDefinition } from "../task-definition.ts";

/** Tasks by name; or a list of definitions, which know their names, and of tasks by name. */
export type TaskListInput = TaskList | readonly (AnyTaskDefinition | TaskList)[];

/**
 * Tasks by name. A definition that stands under another name answers to its own as well: jobs that are added with it would
 * otherwise never run. Tasks by name that need nothing of this are returned as they are, since their owner may change them.
 */
export function toTaskList(given: TaskListInput): TaskList {
  const parts: readonly (AnyTaskDefinition | TaskList)[] = Array.isArray(given) ? given : [given as TaskList];
  const [only] = parts;
  if (parts.length === 1 && only && !isTaskDefinition(only) && missingNames(only).length === 0) return only;
  const tasks: TaskList = {};
  for (const part of parts) {
    if (isTaskDefinition(part)) name(tasks, part.identifier, part);
    else for (const [key, task] of Object.entries(part)) if (task) name(tasks, key, task);
  }
  for (const definition of missingNames(tasks)) name(tasks, definition.identifier, definition);
  return tasks;
}

function missingNames(tasks: TaskList): AnyTaskDefinition[] {
  return Object.values(tasks).filter((task) => isTaskDefinition(task) && !(task.identifier in tasks)) as never;
}

function name(tasks: TaskList, key: string, task: NonNullable<TaskList[string]>): void {
  if (key in tasks && tasks[key] !== task) throw new ConfigError(`Two tasks are called '${key}': rename one of them.`);
  tasks[key] = task;
}
