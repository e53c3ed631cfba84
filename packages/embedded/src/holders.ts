import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, markOf, type ProcessMark } from "./process-mark.ts";

/** Writes down that this process uses the server; `release` takes it back and says whether anybody else still does. */
export async function hold(folder: string): Promise<{ release(): Promise<{ isLast: boolean }> }> {
  await mkdir(folder, { recursive: true });
  const entry = join(folder, `${process.pid}-${randomUUID()}`);
  await writeFile(entry, JSON.stringify(markOf(process.pid)));
  return {
    async release() {
      await rm(entry, { force: true });
      return { isLast: !(await hasLiveHolder(folder)) };
    },
  };
}

async function hasLiveHolder(folder: string): Promise<boolean> {
  let found = false;
  for (const name of await readdir(folder).catch(() => [])) {
    const entry = join(folder, name);
    if (await isHeld(entry)) found = true;
    // Killed processes never release.
    else await rm(entry, { force: true });
  }
  return found;
}

async function isHeld(entry: string): Promise<boolean> {
  try {
    return isAlive(JSON.parse(await readFile(entry, "utf8")) as ProcessMark);
  } catch {
    return false;
  }
}
