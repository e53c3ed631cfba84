import type { Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import type { FileDetails } from "../hooks/plugin.ts";
import type { Logger } from "../logger.ts";

const folderName = /^[A-Za-z0-9_-]+$/;
/** Helpers that live beside tasks: hidden files, names that begin with `_`, tests, and type declarations. */
const helperName = /^[._]|\.(test|spec)\.[cm]?[jt]sx?$|\.d\.[cm]?ts$|^__tests__$/;
const fileName = /^([A-Za-z0-9_-]+)((?:\.[A-Za-z0-9_-]+)*)$/;

/** The files of a task folder, grouped by the task they belong to, in the order in which tasks are loaded. */
export type TaskFiles = ReadonlyMap<string, readonly FileDetails[]>;

/** What stands at a task path. */
export async function statTaskPath(taskPath: string): Promise<Stats> {
  const stats = await stat(taskPath).catch(() => undefined);
  if (!stats) {
    throw new ConfigError(
      `Could not find tasks to execute - taskDirectory '${taskPath}' does not exist. Create it, or set 'taskDirectory' to the folder that holds your tasks.`,
    );
  }
  if (!stats.isDirectory() && !stats.isFile()) {
    throw new ConfigError(`Could not find tasks to execute - '${taskPath}' is neither a folder nor a file.`);
  }
  return stats;
}

/** Looks through a folder and all folders in it. Files whose names cannot be tasks are left out with a note in the log. */
export async function findTaskFiles(folder: string, logger: Logger): Promise<TaskFiles> {
  const filesByTask = new Map<string, FileDetails[]>();
  await collect(folder, [], filesByTask, logger);
  return new Map([...filesByTask].sort(([a], [b]) => a.localeCompare(b, "en-US")));
}

async function collect(
  folder: string,
  parents: readonly string[],
  filesByTask: Map<string, FileDetails[]>,
  logger: Logger,
): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => a.name.localeCompare(b.name, "en-US"))) {
    if (helperName.test(entry.name)) continue;
    const fullPath = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (folderName.test(entry.name)) await collect(fullPath, [...parents, entry.name], filesByTask, logger);
      else logger.info(`Ignoring folder '${fullPath}': its name cannot be part of a task's name.`);
    } else {
      const details = await detailsOf(fullPath, entry.name, logger);
      if (!details) continue;
      const identifier = [...parents, details.baseName].join("/");
      filesByTask.set(identifier, [...(filesByTask.get(identifier) ?? []), details]);
    }
  }
}

async function detailsOf(fullPath: string, name: string, logger: Logger): Promise<FileDetails | undefined> {
  // Follows a symbolic link; a dangling one, or a file removed since the folder was read, is not there.
  const stats = await stat(fullPath).catch(() => undefined);
  if (!stats?.isFile()) return undefined;
  const [, baseName, extension = ""] = fileName.exec(name) ?? [];
  if (baseName === undefined) {
    logger.info(`Ignoring file '${fullPath}': its name cannot be a task's name.`);
    return undefined;
  }
  return { fullPath, stats, baseName, extension };
}
