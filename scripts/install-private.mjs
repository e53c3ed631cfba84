// Installs the private packages of tests and examples that are missing or older than their lock file. They are heavy and only for tests, so they
// are no part of a normal install.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tests = ["compat", "forward", "dashboard", "dashboard/mounting", "orms", "package", "postgres", "testing"];
const examples = ["frameworks", "next-producer"];

export function installPrivate() {
  for (const name of tests) install(join(root, "test", name));
  for (const name of examples) install(join(root, "examples", name));
}

function install(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(lock)) return;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
    cwd: folder,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(status ?? 1);
}
