// Checks and tests everything: installs the private test packages that are missing, builds, checks, builds the documents, and
// runs every test.
// `--matrix` then runs the tests once more on each of the older PostgreSQL majors. Other arguments go to vitest.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const isMatrix = given.includes("--matrix");
const filters = given.filter((argument) => argument !== "--matrix");

for (const name of ["compat", "orms", "postgres", "testing"]) installPrivate(join(root, "test", name));
installPrivate(join(root, "examples", "frameworks"));
installProgram("pgbouncer", "PgBouncer");
installProgram("redis-server", "Redis");
run("node", ["scripts/build.mjs"]);
run("node", ["scripts/check.mjs"]);
run("node", ["scripts/docs.mjs"]);
run("npx", ["--no-install", "vitest", "run", ...filters]);
if (isMatrix) {
  for (const version of ["17", "16", "15"]) {
    console.log(`PostgreSQL ${version}`);
    run("npx", ["--no-install", "vitest", "run", ...filters], { POSTGRES_VERSION: version });
  }
}

/**
 * These packages are heavy and only for tests, so they are no part of a normal install. Not `npm ci`: it refuses a lock that was
 * made where the registry lacks the optional packages of other platforms.
 */
function installPrivate(folder) {
  const lock = join(folder, "package-lock.json");
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(lock)) return;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {}, folder);
}

/** One test each needs the real program; where it cannot be had, that test says so and is left out. */
function installProgram(program, name) {
  const succeeds = (command, ...args) => spawnSync(command, args, { stdio: "ignore" }).status === 0;
  const isThere = () => [program, `/usr/sbin/${program}`].some((path) => succeeds(path, "--version"));
  if (isThere() || process.getuid?.() !== 0 || !succeeds("apt-get", "--version")) return;
  const install = () => succeeds("apt-get", "install", "-y", "--no-install-recommends", program);
  if (!install() && succeeds("apt-get", "update")) install();
  if (!isThere()) console.log(`${name} could not be installed; what is said about it is not tested.`);
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
