import { access } from "node:fs/promises";
import { type CleanupTask, cleanup } from "../admin/cleanup.ts";
import type { Database } from "../db/database.ts";
import { compileSharedOptions } from "../runner/compile.ts";
import { getTasks } from "../runner/get-tasks.ts";
import type { RunnerOptions } from "../runner/runner-options.ts";
import { suggestion } from "../util/nearest.ts";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

/** What people call them, and Graphile Worker's names; in the order in which they are done. */
const tasks: readonly { readonly task: CleanupTask; readonly name: string; readonly says: string }[] = [
  {
    task: "DELETE_PERMAFAILED_JOBS",
    name: "delete-permanently-failed-jobs",
    says: "Deleting jobs that failed for good",
  },
  { task: "GC_TASK_IDENTIFIERS", name: "gc-task-identifiers", says: "Forgetting tasks without jobs" },
  { task: "GC_JOB_QUEUES", name: "gc-job-queues", says: "Forgetting queues without jobs" },
];

export const allCleanupTasks: readonly CleanupTask[] = tasks.map(({ task }) => task);

/** A comma list of clean-up tasks, in either spelling. */
export function parseCleanupTasks(words: readonly string[]): CleanupTask[] {
  const given = words.flatMap((word) => word.split(",")).map((word) => word.trim());
  return given
    .filter((word) => word !== "")
    .map((word) => {
      const found = tasks.find(({ task, name }) => task === word.toUpperCase() || name === word.toLowerCase());
      if (found) return found.task;
      const names = tasks.map(({ name }) => name);
      throw new UsageError(`'${word}' is no clean-up task; use ${names.join(", ")}.${suggestion(word, names)}`);
    });
}

/** Cleans up, one kind after the other. Names of tasks that the local folder has are kept. */
export async function cleanUp(
  database: Database,
  wanted: readonly CleanupTask[],
  options: RunnerOptions,
  terminal: Terminal,
): Promise<void> {
  const keep = wanted.includes("GC_TASK_IDENTIFIERS") ? await localTaskNames(options) : [];
  for (const { task, says } of tasks) {
    if (!wanted.includes(task)) continue;
    terminal.progress(`${says}…`);
    await cleanup(database, { tasks: [task], taskIdentifiersToKeep: keep });
  }
  terminal.clearProgress();
}

async function localTaskNames(options: RunnerOptions): Promise<string[]> {
  const { taskDirectory } = compileSharedOptions(options).settings;
  const isThere = await access(taskDirectory).then(
    () => true,
    () => false,
  );
  return isThere ? Object.keys((await getTasks(options, taskDirectory)).tasks) : [];
}
