import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
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
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  const args = [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", aside, "--declaration", "false"];
  spawnSync(process.execPath, args, { cwd: root });
  if (!existsSync(join(aside, "index.js")))
    throw new Error("src could not be compiled: run 'npm run build' to see why.");
  cpSync(join(root, "src/db/migrations"), join(aside, "db/migrations"), { recursive: true });
  cpSync(join(root, "src/db/schema.sql"), join(aside, "db/schema.sql"));
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
