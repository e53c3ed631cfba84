import type { Settings } from "../config/settings.ts";
import { defaultResultDays, defaultRetention, type KeepRule, type KeepRules } from "../kept-history.ts";
import type { Task, TaskList } from "../task.ts";
import type { TaskRunSettings } from "../task-options.ts";

type Said = Pick<Settings, "history" | "retention" | "redact" | "taskOptions">;

/** What a pool keeps of the jobs of each task: what the task says, and below it the pool's own options. */
export function makeKeepRules(
  said: Said,
  tasks: TaskList,
  taskOptions: (name: string, task: Task) => TaskRunSettings | undefined,
  opening: KeepRules["opening"] = () => undefined,
): KeepRules {
  const byOptions = new WeakMap<TaskRunSettings, KeepRule | { readonly nothing: true }>();
  const plain = makeRule(said, {});
  return {
    redact: said.redact,
    opening,
    of(name) {
      const task = tasks[name] as Task | undefined;
      const options = task ? taskOptions(name, task) : said.taskOptions?.[name];
      if (!options) return plain;
      let rule = byOptions.get(options);
      if (!rule) {
        rule = makeRule(said, options) ?? { nothing: true };
        byOptions.set(options, rule);
      }
      return "nothing" in rule ? undefined : rule;
    },
  };
}

function makeRule(said: Said, own: TaskRunSettings): KeepRule | undefined {
  const { history = said.history, keepResult: keepsResult = false, resultRetention = defaultResultDays } = own;
  if (history === "off" && !keepsResult) return undefined;
  const { completed, failed } = { ...defaultRetention, ...said.retention, ...own.retention };
  return {
    keptAs: history === "off" ? "none" : history,
    keepsResult,
    completedDays: completed,
    failedDays: failed,
    resultDays: resultRetention,
  };
}

/** For how many days anything is kept; empty if nothing is. */
export function daysKept({ of }: KeepRules, tasks: TaskList): number[] {
  const days = new Set<number>();
  for (const name of Object.keys(tasks)) {
    const rule = of(name);
    if (!rule) continue;
    if (rule.keptAs !== "none") days.add(rule.completedDays).add(rule.failedDays);
    if (rule.keepsResult) days.add(Math.max(rule.resultDays, rule.keptAs === "none" ? 0 : rule.completedDays));
  }
  return [...days];
}
