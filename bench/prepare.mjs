import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const benchDir = fileURLToPath(new URL(".", import.meta.url));
const rootDir = fileURLToPath(new URL("..", import.meta.url));

/** Installs the peers if package-lock.json changed since the last time, and builds what is measured. */
export function prepare({ build, quick }) {
  if (!isInstalled())
    runOrThrow("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"], benchDir);
  if (!build) return;
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: rootDir, encoding: "utf8" });
  if (built.status === 0) return;
  const output = (built.stdout + built.stderr).trim().slice(-2000);
  if (!quick) throw new Error(`The build failed, so there is nothing to quote results of.\n${output}`);
  console.error(`The build failed; trying what dist holds.\n${output}`);
}

/** npm writes its own record last, so an install cut short counts as none. */
function isInstalled() {
  const record = join(benchDir, "node_modules", ".package-lock.json");
  if (!existsSync(record)) return false;
  if (statSync(record).mtimeMs >= statSync(join(benchDir, "package-lock.json")).mtimeMs) return true;
  const versions = (file) => Object.entries(JSON.parse(readFileSync(file, "utf8")).packages);
  const found = new Map(versions(record).map(([path, { version }]) => [path, version]));
  return versions(join(benchDir, "package-lock.json")).every(
    ([path, entry]) => path === "" || entry.optional || found.get(path) === entry.version,
  );
}

function runOrThrow(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (status !== 0) throw new Error(`'${command} ${args.join(" ")}' failed in ${cwd} with exit code ${status}.`);
}
