import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test, vi } from "vitest";
import { parseCrontab } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { linkPackage, makeFolder } from "./packed.ts";
import { type Block, blocksOf, listPages, readPage, root } from "./pages.ts";
import { type } from "./shell.ts";

/* The TypeScript and SQL of the documents: compiled against the package's types, and run on a fresh database. */

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Whole projects that have tests of their own, and fragments that stand for the reader's code. */
const notHere = ["docs/testing.md", "docs/typed-tasks.md", "docs/hooks-and-plugins.md"];
const pages = ["README.md", ...listPages()].filter((path) => !notHere.includes(path));
const isScript = ({ language, file }: Block): boolean => language === "ts" && file === undefined;
const scripted = pages.filter((path) => blocksOf(readPage(path)).some(isScript));
const withSql = pages.filter((path) => blocksOf(readPage(path)).some(({ language }) => language === "sql"));

/** Each block is a program of its own; one that imports nothing from us goes on where the one before it ended. */
function programsOf(path: string): string[] {
  const programs: string[] = [];
  for (const { text } of blocksOf(readPage(path)).filter(isScript)) {
    if (/from "hathi/.test(text) || programs.length === 0) programs.push(text);
    else programs.push(`${programs.pop()}\n${text}`);
  }
  return programs;
}

/** What a reader would look for. */
const words: Readonly<Record<string, readonly RegExp[]>> = {
  "README.md": [/Hello, Ada/, /Hello, Grace/],
  "docs/batch-jobs.md": [/3 at once/, /Failed task .*send-pushes/],
};

const nameOf = (path: string): string => path.replaceAll(/[^a-z]+/gi, "-");
const compilerOptions = {
  target: "es2022",
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  types: ["node"],
  rootDir: "src",
  outDir: "out",
};

let folder: string;
let complaints: string;
beforeAll(async () => {
  const made = await makeFolder("snippets");
  folder = made.folder;
  await linkPackage(folder, ["pg", "@types"]);
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  for (const path of scripted) {
    const home = join(folder, "src", nameOf(path));
    await mkdir(home, { recursive: true });
    for (const [index, text] of programsOf(path).entries())
      await writeFile(join(home, `${index}.ts`), `${text}\nexport {};\n`);
  }
  complaints = await promisify(execFile)(process.execPath, [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    folder,
  ])
    .then(({ stdout }) => stdout)
    .catch(({ stdout }: { stdout: string }) => stdout);
  return made.remove;
});

test("all of them compile", () => {
  expect(complaints).toBe("");
});

test.each(scripted)("the programs in %s run", async (path) => {
  const db = await freshDatabase();
  await db.query("create table users (name text)"); // the reader's own
  const files = programsOf(path).map((_, index) => `./${index}.js`);
  const all = join(folder, "out", nameOf(path), "all.mjs");
  await writeFile(
    all,
    `${files.map((file) => `await import("${file}");`).join("\n")}\nconsole.log("All have run.");\n`,
  );
  const program = type(`"${process.execPath}" "${all}"`, { cwd: folder, env: { DATABASE_URL: db.url } });
  await program.says(/All have run\./);
  for (const word of words[path] ?? []) await program.says(word);
  expect(program.output()).not.toMatch(/deprecat/i);
  // What a comment says will be printed, is printed.
  const promises = programsOf(path).flatMap((text) => [...text.matchAll(/console\.log\(.*\); \/\/ (.+)$/gm)]);
  for (const [, promised] of promises) expect(program.output()).toContain(promised);
});

test.each(withSql)("the SQL in %s runs", async (path) => {
  const db = await freshDatabase();
  for (const { language, text, line } of blocksOf(readPage(path))) {
    if (language !== "sql") continue;
    await db.query(text).catch((error: Error) => {
      throw new Error(`${path}:${line}: ${error.message}`);
    });
  }
});

test("the crontabs can be read", () => {
  const crontabs = pages.flatMap((path) => blocksOf(readPage(path))).filter(({ language }) => language === "crontab");
  expect(crontabs).not.toEqual([]);
  for (const { text } of crontabs) expect(parseCrontab(text)).not.toEqual([]);
});
