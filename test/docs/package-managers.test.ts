import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test, vi } from "vitest";
import { freshEnvironment, makeHome } from "./account.ts";
import { makeFolder, packBoth } from "./packed.ts";
import { blocksOf, readPage } from "./pages.ts";
import { type } from "./shell.ts";

/* "Getting started" with pnpm and yarn; readme.test.ts follows it with npm. Both managers belong to test/package. */

// Installs from the registry, and the machine may be busy.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 });

const bin = fileURLToPath(new URL("../package/node_modules/.bin", import.meta.url));

let tarballs: Record<string, string>;
beforeAll(async () => {
  const { folder, remove } = await makeFolder("packed");
  tarballs = await packBoth(folder);
  return remove;
});

test.each([
  ["pnpm", "pnpm exec"],
  ["yarn", "yarn --silent"],
])("the samples of 'Getting started' work as they are written with %s", async (manager, exec) => {
  const home = await makeHome({ name: "root" });
  const cwd = join(home, "project");
  await mkdir(cwd);
  await writeFile(join(cwd, "package.json"), '{ "private": true }');
  const path = `${bin}:${freshEnvironment(home).PATH}`;
  const run = async (line: string): Promise<string> => {
    const command = type(line, { cwd, home, env: { PATH: path } });
    expect(await command.ended, `${line}:\n${command.output()}`).toBe(0);
    return command.output();
  };

  // The packages are not published yet, so they are named by their files.
  await run(`${manager} add file:${tarballs.hathi} pg`);
  await run(`${manager} add -D file:${tarballs["@hathi/embedded"]}`);
  expect(await run(`${exec} hathi init`)).toContain("wrote tasks/hello.mjs");
  for (const { file, text } of blocksOf(readPage("docs/getting-started.md"))) {
    if (file === undefined) continue;
    await writeFile(join(cwd, file), text);
    if (!file.startsWith("tasks/")) await run(`node ${file}`);
  }
  const output = await run(`${exec} hathi --once`);
  expect(output).toContain("Hello, Grace!");
  expect(output).toContain("Sending 'Welcome' to ada@example.com");
});
