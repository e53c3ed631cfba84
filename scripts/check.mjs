// Checks that do not run the code, all at once. The types of private packages are needed for them; `--no-install` takes those that are there.
import { spawn } from "node:child_process";
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
const outputs = await Promise.all(checks.map(([name, command]) => check(name, command)));
const failed = outputs.filter((output) => output !== undefined);
for (const output of failed) console.error(output);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Gives what a check printed if it failed. */
function check(name, command) {
  const child = spawn("npx", ["--no-install", ...command.split(" ")], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => {
      output += `${error.message}\n`;
    });
    child.once("close", (status) => {
      console.log(`${status === 0 ? "✓" : "✗"} ${name}`);
      resolve(status === 0 ? undefined : output);
    });
  });
}
