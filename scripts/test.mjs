// Checks and tests everything: installs the private test packages that are missing, builds, checks, builds the documents, and
// runs every test.
// `--matrix` then runs the tests once more on each of the older PostgreSQL majors. Other arguments go to vitest.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installProgram } from "./install-program.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const isMatrix = given.includes("--matrix");
const filters = given.filter((argument) => argument !== "--matrix");

for (const name of ["compat", "forward", "dashboard", "dashboard/mounting", "orms", "package", "postgres", "testing"])
  installPrivate(join(root, "test", name));
for (const name of ["frameworks", "next-producer"]) installPrivate(join(root, "examples", name));
const gaps = Object.entries({
  git: "Git",
  python3: "Python",
  pgbouncer: "PgBouncer",
  "redis-server": "Redis",
  prometheus: "Prometheus",
  "nats-server": "NATS",
  "rabbitmq-server": "RabbitMQ",
  kcat: "kcat",
  chromium: "Chromium",
})
  .map(([program, name]) => installProgram(program, name))
  .filter((gap) => gap !== undefined);
// Last of all, below vitest's own count of what it skipped.
process.on("exit", () => {
  for (const gap of gaps) console.log(gap);
});
run("node", ["scripts/build.mjs"]);
run("node", ["scripts/check.mjs"]);
run("node", ["scripts/docs.mjs"]);
run("npx", ["--no-install", "vitest", "run", ...filters]);
if (isMatrix) {
  for (const version of ["17", "16", "15", "14"]) {
    console.log(`PostgreSQL ${version}`);
    run("npx", ["--no-install", "vitest", "run", ...filters], { POSTGRES_VERSION: version });
  }
}

/** These packages are heavy and only for tests, so they are no part of a normal install. */
function installPrivate(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(lock)) return;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {}, folder);
}

function run(command, args, environment = {}, cwd = root) {
  const { status } = spawnSync(command, args, {
    cwd,
    stdio: "inherit",
    env: { ...process.env, ...environment },
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(status ?? 1);
}
