import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type Installed, installCopy } from "../support/installed.ts";
import { type ProgramOptions, type RunningProgram, startCommand } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";
import { until } from "../support/wait.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

let installed: Installed;
beforeAll(() => {
  installed = installCopy({ embedded: true });
});
afterAll(() => installed.remove());

const isRoot = process.geteuid?.() === 0;
const nobody = isRoot ? Number(/^nobody:[^:]*:(\d+)/m.exec(readFileSync("/etc/passwd", "utf8"))?.[1]) : undefined;

const hello = "export default (payload, helpers) => helpers.logger.info('Hello ' + payload.name);";

/** A project that belongs to the account the program runs as. */
async function makeOwnProject(uid: number | undefined): Promise<Project> {
  const project = await makeProject({ "tasks/hello.mjs": hello });
  if (uid !== undefined) for (const name of [".", "tasks", "tasks/hello.mjs"]) chownSync(project.path(name), uid, uid);
  return project;
}

function start(args: readonly string[], options: ProgramOptions): RunningProgram {
  return startCommand(process.execPath, [installed.mainFile, ...args], options);
}

const canConnect = async (connectionString: string): Promise<boolean> => {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
};

const accounts: [string, number | undefined][] = isRoot
  ? [
      ["root", undefined],
      ["a normal user", nobody],
    ]
  : [["a normal user", undefined]];

test.each(accounts)("without a database, %s gets an embedded one that several commands share", async (_who, uid) => {
  const { folder: cwd } = await makeOwnProject(uid);
  const options = { cwd, ...(uid !== undefined && { uid }) };
  const worker = start([], options);
  const [, url] = await worker.says(/embedded PostgreSQL with its data in \.\/\.hathi; psql "(postgres:\/\/[^"]+)"/);
  expect(worker.stderr().trim().split("\n")).toHaveLength(1);
  await worker.says(/looking for jobs/);
  expect(await canConnect(url!)).toBe(true);

  const add = await start(["add", "hello", "--payload", '{"name":"Ada"}'], options).ended;
  expect(add).toMatchObject({ code: 0, stdout: "Job 1 (hello) added.\n", stderr: "" });
  await worker.says(/Hello Ada/);
  expect(await canConnect(url!)).toBe(true);

  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0, signal: null });
  expect(await canConnect(url!)).toBe(false);
  expect(readdirSync(cwd).sort()).toEqual([".hathi", "tasks"]);
});

test("its data outlives the server", async () => {
  const { folder: cwd } = await makeOwnProject(undefined);
  expect(await start(["add", "hello", "--run-at", "1d"], { cwd, input: "" }).ended).toMatchObject({ code: 0 });
  const { stdout } = await start(["list", "--json"], { cwd, input: "" }).ended;
  expect(JSON.parse(stdout)).toMatchObject({ jobs: [{ id: "1", state: "scheduled" }] });
});

test("a worker that was killed leaves a server that the next one takes over", async () => {
  const { folder: cwd } = await makeOwnProject(undefined);
  const first = start([], { cwd });
  await first.says(/looking for jobs/);
  first.kill("SIGKILL");
  await first.ended;
  const second = start([], { cwd });
  const [, url] = await second.says(/psql "([^"]+)"/);
  await second.says(/looking for jobs/);
  second.kill("SIGINT");
  expect(await second.ended).toMatchObject({ code: 0 });
  await until(async () => !(await canConnect(url!)), { what: "the server is gone" });
});

test("without a database and without the embedded one, both ways out are named", async () => {
  const bare = installCopy({ embedded: false });
  onTestFinished(() => bare.remove());
  const { folder: cwd } = await makeProject({ "tasks/hello.mjs": hello });
  const end = await startCommand(process.execPath, [bare.mainFile], { cwd, input: "" }).ended;
  expect(end).toMatchObject({ code: 1, stdout: "" });
  expect(end.stderr).toBe(
    "No database is configured. Name one with DATABASE_URL (in the environment or a .env file) or --connection, or run 'npm install --save-dev @hathi/embedded' to have one started for you.\n",
  );
  expect(existsSync(`${cwd}/.hathi`)).toBe(false);
});
