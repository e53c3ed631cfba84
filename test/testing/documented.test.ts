import { chmod, mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { installPackage } from "../support/installed-package.ts";
import { type ProgramEnd, startCommand } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";

/* The examples of docs/testing.md, exactly as they stand there. */

const page = await readFile(new URL("../../docs/testing.md", import.meta.url), "utf8");

/** The files that a section of the page shows, by name. */
function filesOf(section: string): Record<string, string> {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "";
  const blocks = [...text.matchAll(/^```js \[(.+?)\]\n([\s\S]*?)^```$/gm)];
  expect(blocks, `examples under '${section}'`).not.toEqual([]);
  return Object.fromEntries(blocks.map(([, name, code]) => [name, code ?? ""]));
}

async function makeExample(section: string): Promise<Project> {
  const project = await makeProject({
    "package.json": '{ "type": "module" }',
    ...filesOf("The code under test"),
    ...filesOf(section),
  });
  // The server's files lie in the project, so that they go with it; its account must be able to reach them.
  await chmod(project.folder, 0o755);
  await mkdir(project.path("tmp"));
  await installPackage(project.folder, ["@hathi/embedded", "vitest"]);
  const jest = fileURLToPath(new URL("node_modules/jest", import.meta.url));
  await symlink(jest, join(project.folder, "node_modules/jest"), "dir");
  return project;
}

function runExample(project: Project, ...args: string[]): Promise<ProgramEnd> {
  const env = { TMPDIR: project.path("tmp"), CI: "true" };
  return startCommand(process.execPath, args, { cwd: project.folder, env, input: "" }).ended;
}

const patience = { timeout: 120_000 };

test("the example for vitest passes", patience, async () => {
  const project = await makeExample("Vitest");
  const end = await runExample(project, "node_modules/vitest/vitest.mjs", "run");
  expect(end.stdout, end.stderr).toMatch(/Tests.*3 passed/);
  expect(end.code).toBe(0);
});

test("the example for jest passes", patience, async () => {
  const project = await makeExample("Jest");
  const end = await runExample(project, "--experimental-vm-modules", "node_modules/jest/bin/jest.js");
  expect(end.stderr, end.stdout).toMatch(/Tests: +2 passed, 2 total/);
  expect(end.code).toBe(0);
});

test("the example for node:test passes", patience, async () => {
  const project = await makeExample("node:test");
  const end = await runExample(project, "--test");
  expect(end.stdout, end.stderr).toMatch(/pass 2\n.*fail 0/);
  expect(end.code).toBe(0);
});

test("the example of crashes passes", patience, async () => {
  const project = await makeExample("Crashes");
  const end = await runExample(project, "--test");
  expect(end.stdout, end.stderr).toMatch(/pass 3\n.*fail 0/);
  expect(end.code).toBe(0);
});
