import type { WorkerPoolOptions } from "../config/options.ts";
import type { ParsedCronItem } from "../cron/cron-item.ts";
import type { CronInput } from "../cron/parse-cron.ts";
import type { TaskListInput } from "../tasks/defined-names.ts";

/** For `run` and `runOnce`. */
export interface RunnerOptions extends WorkerPoolOptions {
  /** The tasks, by name or as a list of definitions; or give a `taskDirectory`. */
  taskList?: TaskListInput;
  /** Folder of task files, one per task. */
  taskDirectory?: string;
  /** The text of a crontab. */
  crontab?: string;
  /** Path of a crontab. */
  crontabFile?: string;
  /** Recurring jobs that `parseCronItems` or `parseCrontab` gave. */
  parsedCronItems?: ParsedCronItem[];
  /** Recurring jobs as you write them (items, `cron.dailyAt(…)`, crontab text); they join those of the crontab. */
  cron?: readonly CronInput[];
}

declare global {
  namespace GraphileConfig {
    interface WorkerOptions {
      /** Recurring jobs; they join those of the crontab. */
      cron?: readonly CronInput[];
    }
  }
}
