import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { resolvePreset } from "graphile-config";
import { type CleanupTask, getTasks, type QueueUtils, type RunnerOptions } from "../index.ts";
import { suggestion } from "../util/nearest.ts";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

/** What people call them, and Graphile Worker's names; in the order in which they are done. */
const tasks: readonly { readonly task: CleanupTask; readonly name: string; readonly says: string }[] = [
  {
    task: "DELETE_PERMAFAILED_JOBS",
    name: "delete-permanently-failed-jobs",
    says: "Deleting permanently failed jobs",
  },
  { task: "GC_TASK_IDENTIFIERS", name: "gc-task-identifiers", says: "Forgetting tasks without jobs" },
  { task: "GC_JOB_QUEUES", name: "gc-job-queues", says: "Forgetting queues without jobs" },
  { task: "DROP_EXPIRED_HISTORY", name: "drop-expired-history", says: "Dropping history that has expired" },
];

/** Names of tasks go only when that is asked for: nothing is gained by it while workers run. */
export const usualCleanupTasks: readonly CleanupTask[] = ["DELETE_PERMAFAILED_JOBS", "GC_JOB_QUEUES"];

/** A comma list of clean-up tasks, in either spelling. */
export function parseCleanupTasks(words: readonly string[]): CleanupTask[] {
  const given = words.flatMap((word) => word.split(",")).map((word) => word.trim());
  return given
    .filter((word) => word !== "")
    .map((word) => {
      const found = tasks.find(({ task, name }) => task === word.toUpperCase() || name === word.toLowerCase());
      if (found) return found.task;
      const names = tasks.map(({ name }) => name);
      throw new UsageError(`'${word}' is not a clean-up task: use ${names.join(", ")}.${suggestion(word, names)}`);
    });
}

/** Cleans up, one kind after the other. Names of tasks that the local folder has are kept. */
export async function cleanUp(
  utils: QueueUtils,
  wanted: readonly CleanupTask[],
  options: RunnerOptions,
  terminal: Terminal,
): Promise<void> {
  const keep = wanted.includes("GC_TASK_IDENTIFIERS") ? await localTaskNames(options) : [];
  for (const { task, says } of tasks) {
    if (!wanted.includes(task)) continue;
    terminal.progress(`${says}…`);
    await utils.cleanup({ tasks: [task], taskIdentifiersToKeep: keep });
  }
  terminal.clearProgress();
}

/** Without a folder of tasks there are no names to keep. */
async function localTaskNames(options: RunnerOptions): Promise<string[]> {
  const folder = resolve(resolvePreset(options.preset ?? {}).worker?.taskDirectory ?? "tasks");
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  return isThere ? Object.keys((await getTasks(options, folder)).tasks) : [];
}
