import type { Database } from "../db/database.ts";
import { deleteDeadJobs } from "../db/statements/delete-dead-jobs.ts";
import { deleteUnusedQueues } from "../db/statements/delete-unused-queues.ts";
import { deleteUnusedTasks } from "../db/statements/delete-unused-tasks.ts";
import { JobSpecError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";

/** Forgets names of tasks or of queues without jobs, or deletes jobs that failed for good. */
export type CleanupTask = "GC_TASK_IDENTIFIERS" | "GC_JOB_QUEUES" | "DELETE_PERMAFAILED_JOBS";

export interface CleanupOptions {
  /** Default: both kinds of names. */
  tasks?: readonly CleanupTask[];
  /** Names that stay although they have no job: those of tasks that a running worker knows. */
  taskIdentifiersToKeep?: readonly string[];
}

/** In this order, so that deleted jobs no longer hold on to names. */
const runs: Record<CleanupTask, (database: Pick<Database, "run">, options: CleanupOptions) => Promise<unknown>> = {
  DELETE_PERMAFAILED_JOBS: (database) => database.run(deleteDeadJobs, {}),
  GC_TASK_IDENTIFIERS: (database, { taskIdentifiersToKeep = [] }) =>
    database.run(deleteUnusedTasks, { keep: taskIdentifiersToKeep }),
  GC_JOB_QUEUES: (database) => database.run(deleteUnusedQueues, {}),
};

/** Without options only queues are cleaned, since forgetting the names of tasks is not safe while workers run. */
export async function cleanup(
  database: Pick<Database, "run">,
  options: CleanupOptions = { tasks: ["GC_JOB_QUEUES"] },
): Promise<void> {
  const { tasks = ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS"] } = options;
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
