import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { linkPackage } from "../docs/packed.ts";
import { freshDatabase } from "../support/database.ts";
import { type ProgramEnd, runProgram, startProgram } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

/** What the compiler, and so an editor, says of the project's files. */
async function compile(project: Project, extension: string): Promise<string> {
  const flags = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--skipLibCheck", "--module", "nodenext"];
  const files = [`tasks/hello.${extension}`, `hathi.config.${extension}`];
  const run = promisify(execFile)(process.execPath, [tsc, ...flags, "--types", "node", ...files], {
    cwd: project.folder,
  });
  return run.then(
    () => "",
    ({ stdout }: { stdout: string }) => stdout,
  );
}

test.each([
  ["--js", "mjs"],
  ["--ts", "ts"],
])("init %s names every file it writes, and the project runs and has types", async (flag, extension) => {
  const db = await freshDatabase();
  const project = await makeProject({ "package.json": '{ "type": "module" }' });
  await linkPackage(project.folder, ["pg", "@types", "@graphile", "graphile-config"]);
  const hathi = (...args: string[]): Promise<ProgramEnd> =>
    runProgram(args, { cwd: project.folder, env: { DATABASE_URL: db.url } });

  const before = await listFiles(project);
  const { code, stdout, stderr } = await hathi("init", flag);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const announced = [...stdout.matchAll(/^wrote (\S+)/gm)].map(([, name]) => name!);
  expect(announced.sort()).toEqual((await listFiles(project)).filter((name) => !before.includes(name)));
  expect(announced).toEqual([".gitignore", "crontab", `hathi.config.${extension}`, `tasks/hello.${extension}`]);

  expect(await hathi("add", "hello", "--payload", '{"name":"Ada"}')).toMatchObject({ code: 0 });
  expect((await hathi("--once")).stdout).toContain("Hello, Ada!");
  expect(await db.jobs()).toEqual([]);
  expect((await hathi("history")).stdout).toMatch(/succeeded +hello/);

  // The command that it names shows where the page is on which the jobs run.
  expect(stdout).toContain("'npx hathi --dashboard', which prints the address of a web page");
  const worker = startProgram(["--dashboard", "--dashboard-port", "0"], {
    cwd: project.folder,
    env: { DATABASE_URL: db.url },
  });
  const [address] = await worker.says(/http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/);
  expect((await fetch(address, { redirect: "manual" })).status).toBe(303);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });

  expect(await compile(project, extension)).toBe("");
  const config = project.path(`hathi.config.${extension}`);
  await writeFile(config, (await readFile(config, "utf8")).replace("concurrentJobs", "concurentJobs"));
  expect(await compile(project, extension)).toContain("concurentJobs");

  expect(await hathi("init", flag)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is already there; nothing was written"),
  });
});

test("init follows tsconfig.json, and says which package is missing", async () => {
  const typed = await makeProject({ "tsconfig.json": "{}", ".gitignore": ".hathi/\n" });
  const end = await runProgram(["init"], { cwd: typed.folder });
  expect(end.stdout).toMatch(/^wrote tasks\/hello\.ts\nwrote crontab\nwrote hathi\.config\.ts\n\n/);
  expect(end.stderr).toContain("npm install hathi");
  const plain = await makeProject();
  const { stdout } = await runProgram(["init", "--json"], { cwd: plain.folder });
  expect(JSON.parse(stdout)).toEqual({ files: ["tasks/hello.mjs", "crontab", "hathi.config.mjs", ".gitignore"] });
  expect(await runProgram(["init", "--ts", "--js"], { cwd: plain.folder })).toMatchObject({
    code: 1,
    stderr: "Give either --ts or --js, not both.\n",
  });
});

async function listFiles(project: Project): Promise<string[]> {
  const entries = await readdir(project.folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(project.folder.length + 1))
    .sort();
}
