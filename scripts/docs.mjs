// Builds the documents as a static site into docs/.vitepress/dist; a link that leads nowhere fails it. `--serve` shows them while
// they are written. What it needs is a package of its own, so that a normal install stays light.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../docs", import.meta.url));
const installed = join(folder, "node_modules/.package-lock.json");
const lock = join(folder, "package-lock.json");

if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lock).mtimeMs) {
  run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error");
}
run("npx", "--no-install", "vitepress", process.argv.includes("--serve") ? "dev" : "build", ".");

function run(command, ...args) {
  const { status } = spawnSync(command, args, { cwd: folder, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
