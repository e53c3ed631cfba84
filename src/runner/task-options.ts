import type { Task } from "../task.ts";
import { optionsOfTask } from "../task-definition.ts";
import type { TaskRunSettings } from "../task-options.ts";

/** How jobs of each task run: what the option `taskOptions` says, and below it what the task says itself. */
export function makeTaskOptions(
  byName: { readonly [name: string]: TaskRunSettings } = {},
): (name: string, task: Task) => TaskRunSettings | undefined {
  const known = new WeakMap<Task, Map<string, TaskRunSettings | undefined>>();
  return (name, task) => {
    let byTask = known.get(task);
    if (!byTask) {
      byTask = new Map();
      known.set(task, byTask);
    }
    if (byTask.has(name)) return byTask.get(name);
    const given = Object.hasOwn(byName, name) ? byName[name] : undefined;
    const own = optionsOfTask(task, name);
    const settings = given && own ? { ...own, ...given } : (given ?? own);
    byTask.set(name, settings);
    return settings;
  };
}
