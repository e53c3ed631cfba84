import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const cache = join(root, "node_modules", ".cache", "hathi-built");

/** The entry of the library as users run it: compiled from what src holds now, in a place that no other build clears. */
export function builtLibrary(): string {
  const files = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  );
  const newest = Math.max(...files.map((file) => statSync(join(file.parentPath, file.name)).mtimeMs));
  const folder = join(cache, `${files.length}-${Math.round(newest)}`);
  if (!existsSync(folder)) build(folder);
  return join(folder, "index.js");
}

/** Builds aside and renames, so that a folder that is there is whole. */
function build(folder: string): void {
  mkdirSync(cache, { recursive: true });
  removeOld();
  const aside = mkdtempSync(join(cache, "new-"));
  spawnSync(process.execPath, [join(root, "scripts/bundle.mjs"), aside], { cwd: root });
  if (!existsSync(join(aside, "index.js")))
    throw new Error("src could not be compiled: run 'npm run build' to see why.");
  try {
    renameSync(aside, folder);
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // otherwise another test file was faster
  }
}

function removeOld(): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (ageMs > 3_600_000) rmSync(path, { recursive: true, force: true });
  }
}
