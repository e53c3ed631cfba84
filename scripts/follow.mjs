// Follows the README and docs/getting-started.md to the letter, in fresh clones and empty folders, as root and as a normal user
// (as a normal user only, if that is who runs it). Arguments go to vitest: `-t "normal user"`, or the name of a file.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const steps = [
  ["node", "scripts/build.mjs"],
  ["npx", "--no-install", "vitest", "run", "--config", "test/docs/follow.config.ts", ...process.argv.slice(2)],
];
for (const [command, ...args] of steps) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
