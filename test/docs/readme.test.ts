import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { accounts, giveTo, makeHome } from "./account.ts";
import { follow, stop } from "./follow.ts";
import { makeFolder, packBoth } from "./packed.ts";
import { blocksOf, readPage, root, sectionOf } from "./pages.ts";

/* README.md and docs/getting-started.md, followed to the letter: every command is typed, every file is written. */

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let tarballs: Record<string, string>;
beforeAll(async () => {
  const { folder, remove } = await makeFolder("packed");
  tarballs = await packBoth(folder);
  return remove;
});

test.each(accounts)("the README's quick start works as it is written, for $name", async (account) => {
  const { home, project } = await makeProject(account);
  const blocks = blocksOf(sectionOf(readPage("README.md"), "Quick start: command line"));
  const { outputs, worker } = await follow(blocks, tarballs, { cwd: project, home, uid: account.uid });
  await worker().says(/Hello, Ada!/);
  expect(outputs.join("\n")).toContain("wrote tasks/hello.mjs");
  expect(outputs.at(-2)).toMatch(/scheduled +.*hello/);
  expect(outputs.at(-1)).toMatch(/may not run before|There is no job 2/);
  await stop(worker(), join(project, ".hathi"));
  expect(worker().output()).toMatch(/graceful shutdown/);
});

/** The README is followed as root, too. This page has more tasks and commands, and nothing else that depends on the account. */
const [visitor] = accounts.slice(-1);

test("the page 'Getting started' works as it is written, for a normal user", async () => {
  const account = visitor!;
  const { home, project } = await makeProject(account);
  const blocks = blocksOf(readPage("docs/getting-started.md"));
  const { outputs, worker } = await follow(blocks, tarballs, { cwd: project, home, uid: account.uid });
  await worker().says(/Hello, Ada!/);
  await worker().says(/Sending 'Welcome' to ada@example\.com \(attempt 1 of 25\)/);
  await worker().says(/'nobody' is no address/);
  await worker().says(/Hello, Grace!/);
  expect(outputs.join("\n")).toContain("wrote crontab");
  await stop(worker(), join(project, ".hathi"));
  expect(worker().output()).toMatch(/graceful shutdown/);
});

async function makeProject(account: (typeof accounts)[number]): Promise<{ home: string; project: string }> {
  const home = await makeHome(account);
  const project = join(home, "project");
  await mkdir(project);
  if (account.uid !== undefined) await giveTo(account.uid, project);
  return { home, project };
}

test("the README's two commands are those of this repository", async () => {
  const commands = blocksOf(sectionOf(readPage("README.md"), "Two commands")).map(({ text }) => text.trim());
  expect(commands).toEqual(["npm install && npm start", "npm install && npm test"]);
  const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { scripts: object };
  expect(scripts).toMatchObject({ start: "node examples/quick-start/start.mjs", test: "node scripts/test.mjs" });
});

test("the README's line for a package.json is JSON that names our package", () => {
  const [block] = blocksOf(sectionOf(readPage("README.md"), "From Graphile Worker"));
  const { name, version } = JSON.parse(readPage("package.json")) as { name: string; version: string };
  const alias = [`npm:${name}`, `npm:${name}@^${version}`];
  const { dependencies } = JSON.parse(`{ ${block!.text} }`) as { dependencies: Record<string, string> };
  expect(alias).toContain(dependencies["graphile-worker"]);
});
