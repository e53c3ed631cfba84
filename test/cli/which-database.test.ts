import { readdir, readFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { describeDatabase } from "../../src/cli/describe-database.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";

vi.setConfig({ testTimeout: 120_000 });

test.each([
  ["postgres://app:secret@db.example.com:6432/shop?sslmode=require", "database 'shop' on db.example.com:6432"],
  ["postgres://app:secret@db.example.com", "database 'app' on db.example.com:5433"],
  ["postgres:///shop?host=/run/postgresql", "database 'shop' on the socket in /run/postgresql"],
  ["socket:/run/postgresql?db=shop", "database 'shop' on the socket in /run/postgresql"],
  ["/run/postgresql shop", "database 'shop' on the socket in /run/postgresql"],
  ["shop", "database 'shop' on example.org:5433"],
  [undefined, "database 'other' on example.org:5433"],
  ["postgres://app:%ZZ@db.example.com/%ZZ", "the database of the connection string"],
])("%s is called: %s", (connectionString, description) => {
  const env = { PGHOST: "example.org", PGPORT: "5433", PGDATABASE: connectionString?.includes("//app") ? "" : "other" };
  expect(describeDatabase(connectionString, env)).toBe(description);
});

const config = `
import { forward } from ${JSON.stringify(builtLibrary().replace(/index\.js$/, "forward/index.js"))};
export default { worker: { forward: [forward({ tasks: ["mail/*"], to: async (batch) => batch.map(() => "acked") })] } };`;

/** One that opens the database by itself each, and a few of those that share `withUtils`. */
const calls: Readonly<Record<string, readonly string[]>> = {
  run: ["--once"],
  dashboard: ["dashboard"],
  forward: ["forward"],
  list: ["list"],
  add: ["add", "hello", "--run-at", "1d", "--json"],
  migrate: ["migrate"],
};
const lasting = ["dashboard", "forward"];

test("commands name the database they act on, on stderr and without the password", async () => {
  const db = await freshDatabase();
  const project = await makeProject({
    "tasks/hello.mjs": "export default () => undefined;",
    "hathi.config.mjs": config,
  });
  const { hostname, port, password } = new URL(db.url);
  const expected = `Using database '${db.name}' on ${hostname}:${port} (DATABASE_URL).`;
  const options = { cwd: project.folder, env: { DATABASE_URL: db.url } };
  const runs = Object.entries(calls).map(async ([name, args]) => {
    const program = startProgram(args, options);
    if (lasting.includes(name)) {
      await program.says(/^Using .*/m);
      program.kill("SIGTERM");
    }
    const { database, stderr, stdout } = await program.ended;
    expect(database, `${name}\n${stderr}`).toBe(expected);
    expect(stdout + stderr).not.toContain(password);
    if (name === "add") expect(JSON.parse(stdout)).toMatchObject({ task_identifier: "hello" });
  });
  await Promise.all(runs);
});

test("every other command opens the database with `withUtils`, which names it", async () => {
  const folder = new URL("../../src/cli/commands/", import.meta.url);
  const files = (await readdir(folder)).filter((file) => file !== "init.ts");
  expect(files.length).toBeGreaterThan(25);
  const own = [];
  for (const file of files) {
    const text = await readFile(new URL(file, folder), "utf8");
    if (/\bresolveOptions\(/.test(text)) own.push(file);
    else expect(text, file).toContain("withUtils(");
  }
  expect(own.sort()).toEqual(["dashboard.ts", "forward.ts", "run.ts"]);
});

test("a worker that logs JSON names it in its log", async () => {
  const db = await freshDatabase();
  const project = await makeProject({ "tasks/hello.mjs": "export default () => undefined;" });
  const args = ["--once", "--log-format", "json", "-c", db.url];
  const { stdout, stderr } = await runProgram(args, { cwd: project.folder });
  expect(stderr).toBe("");
  const messages = stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { message: string }).message);
  expect(messages[0]).toMatch(new RegExp(`^Using database '${db.name}' .*\\(--connection\\)\\.$`));
});

test(".env.local and .env of the project are read; a variable that is set wins", async () => {
  const [shared, own, set] = [await freshDatabase(), await freshDatabase(), await freshDatabase()];
  const project = await makeProject({ ".env": `DATABASE_URL="${shared.url}"\nOTHER=from-env\n` });
  const named = async (env: Record<string, string> = {}): Promise<string | undefined> =>
    (await runProgram(["list"], { cwd: project.folder, env })).database;
  expect(await named()).toMatch(new RegExp(`'${shared.name}' .*\\(DATABASE_URL in \\.env\\)`));
  await project.write(".env.local", `DATABASE_URL=${own.url}\n`);
  expect(await named()).toMatch(new RegExp(`'${own.name}' .*\\(DATABASE_URL in \\.env\\.local\\)`));
  expect(await named({ DATABASE_URL: set.url })).toMatch(new RegExp(`'${set.name}' .*\\(DATABASE_URL\\)`));

  await project.write("tasks/show.mjs", "export default () => console.log('OTHER is ' + process.env.OTHER);");
  await shared.query("select graphile_worker.add_job('show')");
  await own.query("select graphile_worker.add_job('show')");
  const worker = startProgram(["--once"], { cwd: project.folder });
  await worker.says(/OTHER is from-env/);
  expect((await worker.ended).code).toBe(0);
  expect((await shared.jobs()).length).toBe(1);
});

test("in production no embedded database is started, and the way out is named", async () => {
  const project = await makeProject();
  const end = await runProgram(["list"], { cwd: project.folder, env: { NODE_ENV: "production" } });
  expect(end).toMatchObject({
    code: 1,
    stdout: "",
    stderr:
      "No database is configured, and an embedded one is not for production (NODE_ENV is 'production'): name yours with DATABASE_URL, in a .env file, or with --connection.\n",
  });
});
