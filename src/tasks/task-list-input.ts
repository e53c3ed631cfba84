import { inspect } from "node:util";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { TaskList } from "../task.ts";
import { type AnyTaskDefinition, isTaskDefinition } from "../task-definition.ts";

/** Tasks by name; or a list of definitions, which know their names, and of tasks by name. */
export type TaskListInput = TaskList | readonly (AnyTaskDefinition | TaskList)[];

/**
 * Tasks by name. A definition that stands under another name answers to its own as well: jobs that are added with it would
 * otherwise never run. Tasks by name that need nothing of this are returned as they are, since their owner may change them.
 */
export function toTaskList(given: TaskListInput, logger: Pick<Logger, "warn">): TaskList {
  const all: readonly (AnyTaskDefinition | TaskList)[] = Array.isArray(given) ? given : [given as TaskList];
  for (const part of all) {
    if ((typeof part === "object" && part !== null) || isTaskDefinition(part)) continue;
    throw new ConfigError(
      `The task list must be an object of functions such as { send_email: async () => {} }, got ${inspect(part)}.`,
    );
  }
  const parts = all.map((part) => (isTasks(part) ? part : onlyTasks(part as TaskList, logger)));
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

function isTasks(part: AnyTaskDefinition | TaskList): boolean {
  return (
    isTaskDefinition(part) || Object.values(part).every((task) => task === undefined || typeof task === "function")
  );
}

/** The exports of a module may be a task list, constants and all. */
function onlyTasks(part: TaskList, logger: Pick<Logger, "warn">): TaskList {
  const entries = Object.entries(part).filter(([key, task]) => {
    if (task && typeof task !== "function")
      logger.warn(`Not a task: '${key}' of the task list is a ${typeof task}, not a function.`);
    return typeof task === "function";
  });
  return Object.fromEntries(entries);
}

function missingNames(tasks: TaskList): AnyTaskDefinition[] {
  return Object.values(tasks).filter((task) => isTaskDefinition(task) && !(task.identifier in tasks)) as never;
}

function name(tasks: TaskList, key: string, task: NonNullable<TaskList[string]>): void {
  if (key in tasks && tasks[key] !== task) throw new ConfigError(`Two tasks are called '${key}': rename one of them.`);
  tasks[key] = task;
}
