import { cpSync, mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = new URL(`../.hathi/bench-${process.pid}/`, import.meta.url);

/**
 * A copy of dist for this run: a build made meanwhile must not put two versions into one result.
 * It lies inside the repository, so that it finds the same dependencies as the original.
 */
export function takeSnapshot() {
  mkdirSync(folder, { recursive: true });
  cpSync(new URL("../dist/", import.meta.url), new URL("dist/", folder), { recursive: true });
}

export const snapshotEntry = new URL("dist/index.js", folder).href;

export function dropSnapshot() {
  rmSync(fileURLToPath(folder), { recursive: true, force: true });
}
