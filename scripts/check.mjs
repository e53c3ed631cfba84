// Checks that do not run the code, the fastest first. The types of private packages are needed for them; `--no-install` takes those that are there.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { installPrivate } from "./install-private.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const checks = [
  ["format and lint", "biome check --error-on-warnings ."],
  ["promises", "oxlint --type-aware --deny-warnings"],
  ["types", "tsc --noEmit -p ."],
  ["types of the dashboard's page", "tsc --noEmit -p src/dashboard/app"],
  ["unused code", "knip --no-progress"],
  ["architecture", "vitest run --config test/architecture.config.ts --silent"],
];

if (!process.argv.includes("--no-install")) installPrivate();
const failed = [];
for (const [name, command] of checks) {
  const { status, stdout, stderr } = spawnSync("npx", ["--no-install", ...command.split(" ")], {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  console.log(`${status === 0 ? "✓" : "✗"} ${name}`);
  if (status !== 0) failed.push(`${stdout}${stderr}`);
}
for (const output of failed) console.error(output);
process.exitCode = failed.length === 0 ? 0 : 1;
