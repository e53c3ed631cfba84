import { anything } from "../config/kinds.ts";
import { localQueueTable, refetchDelayTable } from "../config/local-queue-options.ts";
import { directOption, type Given, option } from "../config/option.ts";
import {
  extraTable,
  filesTable,
  poolTable,
  presetTable,
  sharedTable,
  singleTable,
  type WorkerPoolOptions,
  workerSharedTable,
} from "../config/options.ts";
import { recoveryTable } from "../config/recovery-options.ts";
import type { ParsedCronItem } from "../cron/cron-item.ts";
import type { CronInput } from "../cron/parse-cron.ts";
import type { Forwarder } from "../forwarder.ts";
import type { TaskListInput } from "../tasks/task-list-input.ts";

/** The work itself; these options have the types of features, so they cannot be in config/options.ts. */
const workTable = {
  /** The tasks, by name or as a list of definitions; or give a `taskDirectory`. */
  taskList: directOption(anything<TaskListInput>("TaskListInput")),
  /** The text of a crontab. */
  crontab: directOption(anything<string>("string")),
  /** Recurring jobs that `parseCronItems` or `parseCrontab` gave. */
  parsedCronItems: directOption(anything<ParsedCronItem[]>("ParsedCronItem[]")),
  /** Recurring jobs as you write them (items, `cron.dailyAt(…)`, crontab text); they join those of the crontab. */
  cron: option(anything<readonly CronInput[]>("readonly CronInput[]")),
  /** Sends jobs on to other systems: what `forward` of `hathi/forward` gives. */
  forward: option(anything<readonly Forwarder[]>("readonly Forwarder[]")),
};

/** For `run` and `runOnce`. */
export interface RunnerOptions extends WorkerPoolOptions, Given<typeof filesTable>, Given<typeof workTable> {}

declare global {
  namespace GraphileConfig {
    interface WorkerOptions extends Pick<Given<typeof workTable>, "cron" | "forward"> {}
  }
}

/** The tables by name; the reference lists the options of each. */
export const tables = {
  sharedTable,
  workerSharedTable,
  poolTable,
  singleTable,
  extraTable,
  recoveryTable,
  filesTable,
  workTable,
  presetTable,
  localQueueTable,
  refetchDelayTable,
};

/** Every option that some function takes directly. One that belongs into a preset is obeyed here too. */
export const allOptions = {
  ...sharedTable,
  ...workerSharedTable,
  ...poolTable,
  ...singleTable,
  ...extraTable,
  ...recoveryTable,
  ...filesTable,
  ...workTable,
  ...presetTable,
};
