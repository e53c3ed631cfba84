import type { DeclaredLimit } from "../db/statements/limits.ts";
import { ConfigError } from "../errors.ts";
import type { LimitDefinition } from "../limit-options.ts";
import type { Task, TaskList } from "../task.ts";
import type { TaskRunSettings } from "../task-options.ts";
import { suggestion } from "../util/nearest.ts";

/** What a process's code says about limits: its tasks, and every limit with the tasks that obey it. */
export interface CollectedLimits {
  readonly tasks: readonly string[];
  readonly definitions: readonly DeclaredLimit[];
}

/** Gathers the limits of tasks, and the shared ones that tasks name. */
export function collectLimits(
  tasks: TaskList,
  optionsOf: (name: string, task: Task) => TaskRunSettings | undefined,
  shared: { readonly [limit: string]: readonly LimitDefinition[] } = {},
): CollectedLimits {
  const names = Object.keys(tasks);
  const definitions: DeclaredLimit[] = [];
  const tasksByShared = new Map<string, string[]>();
  for (const name of names) {
    const options = optionsOf(name, tasks[name] as Task);
    if (!options) continue;
    const { concurrency = [], rateLimit = [], fair = [], limits = [] } = options;
    for (const limit of [...concurrency, ...rateLimit, ...fair.filter((one) => !hasSame(concurrency, one))]) {
      definitions.push(toDeclared("task", name, limit, [name]));
    }
    for (const limit of limits) {
      if (!Object.hasOwn(shared, limit)) throw unknownLimit(name, limit, Object.keys(shared));
      tasksByShared.set(limit, [...(tasksByShared.get(limit) ?? []), name]);
    }
  }
  for (const [limit, users] of tasksByShared) {
    for (const one of shared[limit]!) definitions.push(toDeclared("shared", limit, one, users));
  }
  return { tasks: names, definitions };
}

/** `concurrency` may say the same with `fair: true`. */
function hasSame(limits: readonly LimitDefinition[], { kind, path }: LimitDefinition): boolean {
  return limits.some((other) => other.kind === kind && other.path.join("\0") === path.join("\0"));
}

function toDeclared(
  scope: DeclaredLimit["scope"],
  name: string,
  { periodMs, weightPath, costPath, ...limit }: LimitDefinition,
  tasks: readonly string[],
): DeclaredLimit {
  return { scope, name, ...limit, period_ms: periodMs, weight_path: weightPath, cost_path: costPath, tasks };
}

function unknownLimit(task: string, limit: string, known: readonly string[]): ConfigError {
  return new ConfigError(
    `Task '${task}' obeys the limit '${limit}', which the option 'limits' does not define.${suggestion(limit, known)}`,
  );
}
