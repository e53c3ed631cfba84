import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { linkPackage, makeFolder } from "./packed.ts";
import { blocksOf, listPages, readPage, root } from "./pages.ts";
import { type } from "./shell.ts";

/* The `npx hathi …` of the guides, typed line by line. Getting started is followed as a whole by readme.test.ts. */

vi.setConfig({ testTimeout: 120_000 });

function linesOf(path: string): string[] {
  const shell = blocksOf(readPage(path)).filter(({ language }) => language === "sh");
  return shell.flatMap(({ text }) => text.split("\n").filter((line) => line.includes("npx hathi")));
}

const pages = listPages().filter((path) => path !== "docs/getting-started.md" && linesOf(path).length > 0);

async function makeProjectOf(path: string): Promise<{ folder: string; remove: () => Promise<void> }> {
  const made = await makeFolder("shell");
  await linkPackage(made.folder, []);
  const bin = join(made.folder, "node_modules/.bin");
  await mkdir(bin);
  await symlink(join(root, "dist/cli/main.js"), join(bin, "hathi"));
  await mkdir(join(made.folder, "tasks"));
  await writeFile(join(made.folder, "tasks/hello.mjs"), "export default () => undefined;");
  const crontab = blocksOf(readPage(path)).find(({ language }) => language === "crontab");
  if (crontab) await writeFile(join(made.folder, "crontab"), crontab.text);
  return made;
}

test.each(pages)("the commands in %s work", async (path) => {
  const db = await freshDatabase();
  const { folder, remove } = await makeProjectOf(path);
  for (const line of linesOf(path)) {
    const command = type(line.replace("postgres://…", db.url), { cwd: folder, env: { DATABASE_URL: db.url } });
    if (/hathi( -.*)?$/.test(line)) {
      await command.says(/looking for jobs/);
      command.interrupt();
      await command.ended; // npx ends with a code of its own
      expect(command.output()).toMatch(/graceful shutdown/);
    } else if (/hathi dashboard$/.test(line)) {
      await command.says(/http:\/\/\S+token=/);
      command.interrupt();
      await command.ended;
    } else {
      expect(await command.ended, `${line}\n${command.output()}`).toBe(0);
    }
  }
  await remove();
});
