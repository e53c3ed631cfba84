import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { giveTo, makeFolder, makeProjectFolder, packBoth } from "./packed.ts";
import { type Block, blocksOf, readPage, root, sectionOf } from "./pages.ts";
import { type Command, type ShellOptions, type } from "./shell.ts";

/* README.md and docs/getting-started.md, followed to the letter: every command is typed, every file is written. */

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let tarballs: Record<string, string>;
beforeAll(async () => {
  const { folder, remove } = await makeFolder("packed");
  tarballs = await packBoth(folder);
  return remove;
});

/** What was typed, and what came of it. */
interface Follower {
  readonly outputs: string[];
  /** The worker, once it was started. */
  readonly worker: () => Command;
}

/** Types the commands of the blocks and writes their files, in order. The worker is left running, as in a terminal of its own. */
async function follow(blocks: readonly Block[], options: ShellOptions): Promise<Follower> {
  const outputs: string[] = [];
  let worker: Command | undefined;
  let isOwned = false;
  for (const block of blocks) {
    if (block.file !== undefined) {
      const path = join(options.cwd, block.file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, block.text);
      // With --watch the worker takes it up by itself.
      if (block.file.startsWith("tasks/")) await worker?.says(/send-email/);
      continue;
    }
    if (block.language !== "sh") continue;
    for (const line of block.text.trim().split("\n")) {
      if (line.startsWith("npm install ")) {
        // Not published yet, so the packages are named by their files.
        const install = line.replaceAll(/(?<= )(hathi|@hathi\/embedded)(?= |$)/g, (name) => tarballs[name]!);
        const { uid, ...asMe } = options;
        const installing = type(`${install} --prefer-offline --no-audit --no-fund`, asMe);
        expect(await installing.ended, installing.output()).toBe(0);
        if (uid !== undefined && !isOwned) await giveTo(uid, options.cwd);
        isOwned = true;
      } else if (/^npx hathi( --watch)?$/.test(line)) {
        worker = type(line, options);
        await worker.says(/looking for jobs/);
      } else {
        const command = type(line, options);
        const code = await command.ended;
        // A recurring job may have taken the number that is asked for.
        expect([0, ...(line.includes(" why ") ? [1] : [])], `${line}:\n${command.output()}`).toContain(code);
        outputs.push(command.output());
      }
    }
  }
  return { outputs, worker: () => worker! };
}

async function stop(worker: Command): Promise<void> {
  worker.interrupt();
  await worker.says(/graceful shutdown/);
  await worker.ended;
}

test("the README's quick start works as it is written", async () => {
  const folder = await makeProjectFolder("readme");
  const section = sectionOf(readPage("README.md"), "Quick start: command line");
  const { outputs, worker } = await follow(blocksOf(section), { cwd: folder });
  await worker().says(/Hello, Ada!/);
  expect(outputs.join("\n")).toContain("wrote tasks/hello.mjs");
  expect(outputs.at(-2)).toMatch(/scheduled +.*hello/);
  expect(outputs.at(-1)).toMatch(/may not run before|There is no job 2/);
  await stop(worker());
});

test("the page 'Getting started' works as it is written, for a user without special rights", async () => {
  const folder = await makeProjectFolder("started");
  const page = readPage("docs/getting-started.md");
  // An account that every system has. Where we are nobody special ourselves, we do it.
  const uid = process.getuid?.() === 0 ? 65_534 : undefined;
  const { outputs, worker } = await follow(blocksOf(page), { cwd: folder, uid, env: { HOME: folder } });
  await worker().says(/Hello, Ada!/);
  await worker().says(/Sending 'Welcome' to ada@example\.com \(attempt 1 of 25\)/);
  await worker().says(/'nobody' is no address/);
  expect(outputs.join("\n")).toContain("wrote crontab");
  await stop(worker());
});

test("the README's two commands are those of this repository", async () => {
  const commands = blocksOf(sectionOf(readPage("README.md"), "Two commands")).map(({ text }) => text.trim());
  // `npm test` is how this test is run; what `npm start` does is shown by test/cli/quick-start.test.ts.
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
