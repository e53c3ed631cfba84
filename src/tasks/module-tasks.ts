import type { Logger } from "../logger.ts";
import { isValidTask, type Task, type TaskList } from "../task.ts";
import { isTaskDefinition } from "../task-definition.ts";
import { giveOptions, readTaskOptions } from "../task-options.ts";
import { unwrapDefault } from "../util/unwrap-default.ts";
import { importFile } from "./import-file.ts";
import { TaskFileError } from "./task-file-error.ts";
/**
 * The task that a file exports: its default export, or what CommonJS calls `module.exports`. If that is a definition, its name
 * must be the file's: jobs are added with the one, and looked for under the other.
 */
export async function loadTaskFile(file: string, identifier: string): Promise<Task> {
  const module = await importFile(file);
  const exported = unwrapDefault(module);
  if (!isValidTask(exported)) {
    throw new TaskFileError(
      file,
      `Invalid task '${file}': expected its default export (or module.exports) to be a function, got ${kindOf(exported)}.`,
    );
  }
  if (isTaskDefinition(exported) && exported.identifier !== identifier) {
    throw new TaskFileError(
      file,
      `'${file}' is the file of task '${identifier}', but defines task '${exported.identifier}': rename one of them.`,
    );
  }
  const options = optionsIn(module);
  if (options !== undefined) giveOptions(exported, identifier, readTaskOptions(options, `'options' of '${file}'`));
  return exported;
}

/** What a task file exports as `options`, beside its task. */
function optionsIn(module: unknown): unknown {
  let value = module;
  for (let level = 0; level < 3; level++) {
    if (typeof value !== "object" || value === null) return undefined;
    if ("options" in value) return value.options;
    value = (value as { default?: unknown }).default;
  }
  return undefined;
}

/** All tasks of a single file: the properties of its default export if that is an object, else its named exports. */
export async function loadTaskListFile(file: string, logger: Logger): Promise<TaskList> {
  const module = await importFile(file);
  const inner = unwrapDefault(module);
  const exported = typeof inner === "function" ? module : inner;
  const tasks: TaskList = {};
  for (const [name, task] of Object.entries(exported as object)) {
    if (name === "__esModule" || name === "module.exports") continue;
    if (isValidTask(task)) tasks[isTaskDefinition(task) ? task.identifier : name] = task;
    else logger.warn(`Not a task: '${name}' of '${file}' is ${kindOf(task)}, not a function.`);
  }
  return tasks;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Object.prototype.toString.call(value) === "[object Module]") return "only named exports";
  return Array.isArray(value) ? "an array" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}
