import { createServer } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { runCommand } from "../support/command.ts";
import { runProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { sharedDatabase } from "../support/shared-database.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const database = sharedDatabase();
const hello = "export default () => undefined;\n";

/** Runs the program and expects it to end with 1 and one line on stderr. */
async function reasonOf(
  args: string[],
  files: Record<string, string> = {},
  env: Record<string, string> = {},
): Promise<string> {
  const { folder: cwd } = await makeProject(files);
  // Within a test, files are loaded by other rules.
  const run = Object.keys(files).length > 0 ? runProgram : runCommand;
  const { code, stderr } = await run(args, { cwd, env });
  expect({ code, lines: stderr.trim().split("\n").length }, stderr).toEqual({ code: 1, lines: 1 });
  expect(stderr).not.toMatch(/^\s+at /m);
  return stderr.trim().replaceAll(cwd, "<cwd>");
}

async function unusedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("nobody answers at the address", async () => {
  const port = await unusedPort();
  expect(await reasonOf(["-c", `postgres://127.0.0.1:${port}/x`], { "tasks/hello.mjs": hello })).toBe(
    `Could not connect to PostgreSQL at 127.0.0.1:${port}: nothing answers there. Is it running?`,
  );
});

test("the host does not exist", async () => {
  expect(await reasonOf(["-c", "postgres://no-such-host.invalid/x"])).toContain(
    "there is no host called 'no-such-host.invalid'",
  );
});

test("the connection string is no URL of PostgreSQL", async () => {
  expect(await reasonOf(["-c", "mysql://localhost/x"])).toContain("starts with 'mysql:'");
  expect(await reasonOf(["-c", "postgres://user:p@ss:word@host:notaport/x"])).toContain("should look like postgres://");
});

test("a bare name is a database, and a name that is none is refused with the way out", async () => {
  const { hostname, port, username, password } = new URL(database().url);
  const env = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password };
  expect(await reasonOf(["list", "-c", "notaurl"], {}, env)).toBe(
    'PostgreSQL says: database "notaurl" does not exist. Create it, or check the connection string.',
  );
  expect(await reasonOf(["list", "-c", "not a url"], {}, env)).toBe(
    "The connection string is neither a URL nor the name of a database; it should look like " +
      "postgres://user:password@host:5432/database, or be the name of a database.",
  );
  const { folder: cwd } = await makeProject({});
  const { code } = await runCommand(["list", "-c", database().name], { cwd, env });
  expect(code).toBe(0);
});

test("the password is refused", async () => {
  const url = new URL(database().url);
  url.password = "wrong";
  const reason = await reasonOf(["-c", url.href], { "tasks/hello.mjs": hello });
  expect(reason).toMatch(/^PostgreSQL refused the login: password authentication failed/);
});

test("the database does not exist", async () => {
  const url = new URL(database().url);
  url.pathname = "/nowhere";
  expect(await reasonOf(["list", "-c", url.href])).toBe(
    'PostgreSQL says: database "nowhere" does not exist. Create it, or check the connection string.',
  );
});

test("there is no tasks folder", async () => {
  expect(await reasonOf(["-c", database().url])).toBe(
    "Could not find tasks to execute - taskDirectory '<cwd>/tasks' does not exist. Create it, or set 'taskDirectory' to the folder that holds your tasks.",
  );
});

test.each([
  ["mjs", "export default () => {\n  const x = ;\n};\n"],
  ["js", "module.exports = () => {\n  const x = ;\n};\n"],
  ["cjs", "module.exports = () => {\n  const x = ;\n};\n"],
  ["ts", "export default (a: number) => {\n  const x = ;\n};\n"],
])("a syntax error in a .%s task names file and line", async (extension, text) => {
  const reason = await reasonOf(["-c", database().url], { [`tasks/bad.${extension}`]: text });
  expect(reason).toContain(`Could not load '<cwd>/tasks/bad.${extension}': `);
  expect(reason).toContain(`<cwd>/tasks/bad.${extension}:2`);
  expect(reason).toMatch(/Unexpected token/);
});

test("a syntax error in a file that a task imports names that file", async () => {
  const reason = await reasonOf(["-c", database().url], {
    "tasks/task.mjs": 'import { x } from "../helper.mjs";\nexport default () => x;\n',
    "helper.mjs": "export const x = 1;\n\nexport const y = ;\n",
  });
  expect(reason).toContain("<cwd>/helper.mjs:3");
});

test("a task that throws when loaded, or whose import is missing, says where", async () => {
  expect(await reasonOf(["-c", database().url], { "tasks/bad.mjs": '\nthrow new Error("not today");\n' })).toBe(
    "Could not load '<cwd>/tasks/bad.mjs': not today (<cwd>/tasks/bad.mjs:2)",
  );
  expect(await reasonOf(["-c", database().url], { "tasks/bad.mjs": 'import "nothing-of-the-kind";\n' })).toContain(
    "Cannot find package 'nothing-of-the-kind' imported from <cwd>/tasks/bad.mjs",
  );
  expect(await reasonOf(["-c", database().url], { "tasks/bad.ts": 'import "nothing-of-the-kind";\n' })).toContain(
    "Cannot find module 'nothing-of-the-kind'",
  );
});

test("a task file without a function says what it found", async () => {
  expect(await reasonOf(["-c", database().url], { "tasks/bad.mjs": "export const task = () => 1;\n" })).toBe(
    "Invalid task '<cwd>/tasks/bad.mjs': expected its default export (or module.exports) to be a function, got only named exports.",
  );
  expect(await reasonOf(["-c", database().url], { "tasks/bad.cjs": "module.exports = { a: 1 };\n" })).toContain(
    "got an object",
  );
});

test("an empty task folder is a sentence", async () => {
  const { folder: cwd } = await makeProject({ "tasks/.keep": "" });
  const { code, stderr } = await runProgram(["--once", "-c", database().url], { cwd });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^No runnable tasks! Put a file into the task folder/m);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test("a fault in the crontab names line and column", async () => {
  const files = { "tasks/hello.mjs": hello, crontab: "# fine\n\n* * * * * hello\n61 * * * * hello ?id=second\n" };
  expect(await reasonOf(["-c", database().url], files)).toMatch(/^<cwd>\/crontab:4:1: .*61/);
});

test("a crontab that was named must be there", async () => {
  const reason = await reasonOf(["-c", database().url, "--crontab", "nowhere"], { "tasks/hello.mjs": hello });
  expect(reason).toBe("There is no crontab '<cwd>/nowhere'.");
});

test("a config file that was named must be there, must parse, and must export a preset", async () => {
  expect(await reasonOf(["-C", "nowhere.mjs"])).toBe("The config file '<cwd>/nowhere.mjs' does not exist.");
  expect(await reasonOf([], { "hathi.config.mjs": "export default 7;" })).toContain("must export a preset");
  expect(await reasonOf([], { "hathi.config.ts": "export default {\n  worker: {{}\n};\n" })).toContain(
    "<cwd>/hathi.config.ts:2",
  );
});

test("unknown flags and commands are refused, with the nearest one that exists", async () => {
  expect(await reasonOf(["--jbos", "3"])).toBe("Unknown argument: jbos. Did you mean 'jobs'? (see hathi --help)");
  expect(await reasonOf(["--concurency", "3"])).toContain("Did you mean 'concurrency'?");
  expect(await reasonOf(["lst"])).toBe("Unknown command: lst. Did you mean 'list'? (see hathi --help)");
  expect(await reasonOf(["start"])).toBe("Unknown command: start. Did you mean 'run'? (see hathi --help)");
  expect(await reasonOf(["delete", "7"])).toBe("Unknown command: delete. Did you mean 'complete'? (see hathi --help)");
  expect(await reasonOf(["show", "1", "--jsn"])).toBe(
    "Unknown argument: jsn. Did you mean 'json'? (see hathi show --help)",
  );
  expect(await reasonOf(["list", "--status", "dead"])).toBe(
    "Unknown argument: status. Did you mean 'state'? (see hathi list --help)",
  );
  expect(await reasonOf(["add", "hello", '{"name":"Ada"}'])).toBe(
    `Unknown argument: {"name":"Ada"}. The payload goes into --payload, such as --payload '{"name":"Ada"}'. (see hathi add --help)`,
  );
  expect(await reasonOf(["pause", "hello"])).toContain("Name what to pause with --task, --queue, --worker or --cron.");
  expect(await reasonOf(["show"])).toBe("Something is missing: hathi show <id> (see hathi show --help)");
  expect(await reasonOf(["remove", "-c", database().url])).toMatch(/^Say which jobs: by key, or with --task/);
});

test("flags that contradict each other or have a bad value are refused before anything is opened", async () => {
  expect(await reasonOf(["--once", "--schema-only"])).toContain("cannot be combined");
  expect(await reasonOf(["--watch", "--once"])).toContain("--watch needs a worker that keeps running");
  expect(await reasonOf(["--jobs", "many"])).toContain("--jobs must be a number, got 'many'.");
  expect(await reasonOf(["add", "hello", "--priority", "high"])).toContain("--priority must be a number, got 'high'.");
  expect(await reasonOf(["list", "--limit", "some"])).toContain("--limit must be a number, got 'some'.");
  expect(await reasonOf(["list", "--limit", "1.5"])).toBe("--limit must be a whole number from 1 up, got 1.5.");
  expect(await reasonOf(["--jobs", "1e9"])).toBe("--jobs must be a whole number from 1 to 100000, got 1000000000.");
  expect(await reasonOf(["--jobs", "0"])).toBe("--jobs must be a whole number from 1 to 100000, got 0.");
  expect(await reasonOf(["--cleanup", "GC_TASKS"])).toContain("'GC_TASKS' is not a clean-up task");
  expect(await reasonOf(["--connection"])).toContain("Not enough arguments following: connection");
});

test("PG* variables without a database name are not enough", async () => {
  expect(await reasonOf([], {}, { PGHOST: "localhost" })).toContain("PGDATABASE is not set");
});

test("the program says its version and its flags", async () => {
  const { folder: cwd } = await makeProject();
  onTestFinished(() => undefined);
  expect(await runProgram(["--version"], { cwd })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
  });
  const { code, stdout } = await runProgram(["--help"], { cwd });
  expect(code).toBe(0);
  for (const flag of [
    "--connection",
    "--schema",
    "--schema-only",
    "--once",
    "--watch",
    "--crontab",
    "--jobs",
    "--max-pool-size",
    "--poll-interval",
    "--no-prepared-statements",
    "--config",
    "--cleanup",
  ]) {
    expect(stdout).toContain(flag);
  }
});
