import type { Database } from "../db/database.ts";
import {
  deleteDeadJobs,
  deleteUnusedQueues,
  deleteUnusedTasks,
  lockUnusedQueues,
  lockUnusedTasks,
} from "../db/statements/cleanup.ts";
import { tidyControl } from "../db/statements/control.ts";
import { tendHistory } from "../db/statements/history.ts";
import { JobSpecError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";
import { collectNames } from "./collect-names.ts";
import { findRegisteredWorkers, tasksOf } from "./list-workers.ts";

/** Deletes names of tasks or queues without jobs, permanently failed jobs, or history that has expired. */
export type CleanupTask = "GC_TASK_IDENTIFIERS" | "GC_JOB_QUEUES" | "DELETE_PERMAFAILED_JOBS" | "DROP_EXPIRED_HISTORY";

export interface CleanupOptions {
  /** What to clean up. Default: names of queues; also names of tasks if `taskIdentifiersToKeep` is given. */
  tasks?: readonly CleanupTask[];
  /** Names of tasks to keep even if they have no job. */
  taskIdentifiersToKeep?: readonly string[];
}

/** In this order, so that deleted jobs no longer hold on to names. */
const runs: Record<CleanupTask, (database: Database, options: CleanupOptions) => Promise<unknown>> = {
  DELETE_PERMAFAILED_JOBS: (database) => database.run(deleteDeadJobs, {}),
  GC_TASK_IDENTIFIERS: async (database, { taskIdentifiersToKeep = [] }) => {
    const keep = [...taskIdentifiersToKeep, ...(await findLiveTasks(database))];
    await collectNames(database, {
      lock: (tx, after, limit) => tx.run(lockUnusedTasks, { after, limit, keep }),
      remove: (tx, ids) => tx.run(deleteUnusedTasks, { ids }),
    });
  },
  GC_JOB_QUEUES: (database) =>
    collectNames(database, {
      lock: (tx, after, limit) => tx.run(lockUnusedQueues, { after, limit }),
      remove: (tx, ids) => tx.run(deleteUnusedQueues, { ids }),
    }),
  DROP_EXPIRED_HISTORY: async (database) => {
    await database.run(tidyControl, {});
    for (let step = 0; step < maxPartitions; step++) {
      // No days to make partitions for: it only drops, one partition at a time.
      const [row] = await database.run(tendHistory, { days: [] });
      if (!row?.may_be_more) return;
    }
  },
};

/** More than workers ever make: two for each day of a hundred years. */
const maxPartitions = 80_000;

/** Safe beside running workers. Names of tasks are collected only when asked for, and never those of workers that are alive. */
export async function cleanup(database: Database, options: CleanupOptions = {}): Promise<void> {
  const tasks = options.tasks ?? defaultTasks(options);
  for (const task of tasks) {
    if (!Object.hasOwn(runs, task)) {
      const names = Object.keys(runs);
      throw new JobSpecError(`Unknown clean-up task '${task}': use ${names.join(", ")}.${suggestion(task, names)}`);
    }
  }
  for (const [task, run] of Object.entries(runs)) {
    if (tasks.includes(task as CleanupTask)) await run(database, options);
  }
}

/** Whoever says which names to keep wants the others to go. */
function defaultTasks({ taskIdentifiersToKeep }: CleanupOptions): readonly CleanupTask[] {
  return taskIdentifiersToKeep ? ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS"] : ["GC_JOB_QUEUES"];
}

/** The tasks of workers that send heartbeats. Others notice by themselves that the id of a task has changed. */
async function findLiveTasks(database: Database): Promise<string[]> {
  const workers = (await findRegisteredWorkers(database)) ?? [];
  return workers.filter((worker) => !worker.isSilent).flatMap((worker) => tasksOf(worker) ?? []);
}
