import { lstat, readFile, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { hasCode } from "./embedded-error.ts";

interface Link {
  readonly source: string;
  readonly target: string;
}

/** Creates the library links that a blocked install script left out. False if the folder cannot be written. */
export async function repairSymlinks(nativeDir: string): Promise<boolean> {
  for (const { source, target } of await readLinks(nativeDir)) {
    // Paths in the list start with `native/`, whatever the folder is called here.
    const path = join(nativeDir, relative("native", target));
    try {
      await lstat(path);
    } catch {
      try {
        await symlink(relative(dirname(target), source), path);
      } catch (error) {
        if (hasCode(error, "EACCES", "EPERM", "EROFS")) return false;
        if (!hasCode(error, "EEXIST")) throw error;
      }
    }
  }
  return true;
}

async function readLinks(nativeDir: string): Promise<readonly Link[]> {
  try {
    return JSON.parse(await readFile(join(nativeDir, "pg-symlinks.json"), "utf8"));
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
