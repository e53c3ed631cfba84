// Checks and tests everything: installs the private test packages that are missing, builds, checks, builds the documents, and
// runs every test.
// `--matrix` then runs the tests once more on each of the older PostgreSQL majors. Other arguments go to vitest.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { installPrivate } from "./install-private.mjs";
import { installProgram } from "./install-program.mjs";
import { runTests } from "./run-tests.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const isMatrix = given.includes("--matrix");
const filters = given.filter((argument) => argument !== "--matrix");

installPrivate();
const gaps = Object.entries({
  git: "Git",
  python3: "Python",
  pgbouncer: "PgBouncer",
  "redis-server": "Redis",
  prometheus: "Prometheus",
  "nats-server": "NATS",
  "rabbitmq-server": "RabbitMQ",
  kcat: "kcat",
  faketime: "libfaketime",
  chromium: "Chromium",
})
  .map(([program, name]) => installProgram(program, name))
  .filter((gap) => gap !== undefined);
/** Last of all, below vitest's own counts: what was skipped, and what needs attention. */
const remarks = [...gaps];
process.on("exit", () => {
  for (const remark of remarks) console.log(remark);
});
run("node", ["scripts/build.mjs"]);
await checkAndDocument();
test();
if (isMatrix) {
  for (const version of ["17", "16", "15", "14"]) {
    console.log(`PostgreSQL ${version}`);
    test({ POSTGRES_VERSION: version });
  }
}

function test(environment = {}) {
  const { status, unstable } = runTests({ root, filters, environment });
  for (const file of unstable)
    remarks.push(`${file} failed at first and passed when it ran alone. Find out why: see CONTRIBUTING.md.`);
  if (status !== 0) process.exit(status);
}

/** At once, since most of the building of the documents is one thread's work. What that prints appears at its end. */
async function checkAndDocument() {
  const docs = start("scripts/docs.mjs", ["ignore", "pipe", "pipe"]);
  let output = "";
  for (const stream of [docs.child.stdout, docs.child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  const [checked, documented] = await Promise.all([start("scripts/check.mjs", "inherit").ended, docs.ended]);
  process.stdout.write(output);
  if (checked !== 0 || documented !== 0) process.exit(checked || documented);
}

function start(script, stdio) {
  const child = spawn(process.execPath, [script], { cwd: root, stdio });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status ?? 1));
  });
  return { child, ended };
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
