// Installs the private packages of tests and examples that are missing or older than their lock file. They are heavy and only for tests, so they
// are no part of a normal install.
import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
// The largest first.
const tests = ["orms", "postgres", "package", "testing", "forward", "compat", "dashboard", "dashboard/mounting"];
const examples = ["next-producer", "frameworks"];

/** npm waits for the network and for the disk, and it has little to do in parallel: one at a time leaves half of two cores idle. */
const atOnce = 3;

export async function installPrivate() {
  const folders = [
    ...examples.map((name) => join(root, "examples", name)),
    ...tests.map((name) => join(root, "test", name)),
  ].filter(isMissing);
  const installNext = async () => {
    for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) await install(folder);
  };
  await Promise.all(Array.from({ length: atOnce }, installNext));
}

function isMissing(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  return existsSync(lock) && !(existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs);
}

function install(folder) {
  const child = spawn("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
    cwd: folder,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(error.message);
      process.exit(1);
    });
    child.once("close", (status) => {
      if (status !== 0) process.exit(status ?? 1);
      resolve();
    });
  });
}
