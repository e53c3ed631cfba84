import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { parseCrontab } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { compile } from "./compile.ts";
import { makeFolder } from "./packed.ts";
import { type Block, blocksOf, listPages, readPage } from "./pages.ts";
import { type } from "./shell.ts";

/* The TypeScript and SQL of the documents: compiled against the package's types, and run on a fresh database. */

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Whole projects, which test/testing, test/tasks and test/forward build and run. */
const projects = ["docs/testing.md", "docs/typed-tasks.md", "docs/forwarding.md"];
const pages = ["README.md", ...listPages()].filter((path) => !projects.includes(path));
const isScript = ({ language, file }: Block): boolean => language === "ts" && file === undefined;
const scripted = pages.filter((path) => blocksOf(readPage(path)).some(isScript));
// Least privilege is about roles, which are the whole server's: least-privilege.test.ts runs it.
const withSql = pages.filter(
  (path) => path !== "docs/least-privilege.md" && blocksOf(readPage(path)).some(({ language }) => language === "sql"),
);

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
  "docs/recipes.md": [/Sending 'welcome'/, /Published user.created for Grace/, /Synced 18/, /Import 1 is complete/],
  "docs/batch-jobs.md": [/3 at once/, /Failed task .*send-pushes/],
};

const nameOf = (path: string): string => path.replaceAll(/[^a-z]+/gi, "-");

/** What a page declares for everybody must not help another one, so it is compiled alone. */
const declaring = scripted.filter((path) => readPage(path).includes("declare global"));
const groups = [scripted.filter((path) => !declaring.includes(path)), ...declaring.map((path) => [path])];
const folders = new Map<string, string>();
let complaints: string[];
beforeAll(async () => {
  const made = await Promise.all(groups.map(() => makeFolder("snippets")));
  complaints = await Promise.all(groups.map((paths, index) => compileAll(paths, made[index]!.folder)));
  return async () => {
    for (const { remove } of made) await remove();
  };
});

function compileAll(paths: readonly string[], folder: string): Promise<string> {
  const files = paths.flatMap((path) =>
    programsOf(path).map((text, index) => [`${nameOf(path)}/${index}.ts`, `${text}\nexport {};\n`] as const),
  );
  for (const path of paths) folders.set(path, folder);
  return compile(folder, Object.fromEntries(files));
}

test("all of them compile", () => {
  expect(complaints.join("")).toBe("");
});

test.each(scripted)("the programs in %s run", async (path) => {
  const folder = folders.get(path)!;
  const programs = programsOf(path);
  const db = await freshDatabase();
  await db.query("create table users (name text)"); // the reader's own
  const imports = programs.map((_, index) => `await import("./${index}.js");`);
  const all = join(folder, "out", nameOf(path), "all.mjs");
  await writeFile(all, [...imports, 'console.log("All have run.");'].join("\n"));
  const program = type(`"${process.execPath}" "${all}"`, { cwd: folder, env: { DATABASE_URL: db.url } });
  await program.says(/All have run\./);
  for (const word of words[path] ?? []) await program.says(word);
  expect(program.output()).not.toMatch(/deprecat/i);
  // What a comment says will be printed, is printed.
  const promises = programs.flatMap((text) => [...text.matchAll(/console\.log\(.* \/\/ (.+)$/gm)]);
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

test("the JSON is JSON, and names this version of the package", () => {
  const json = pages.flatMap((path) => blocksOf(readPage(path))).filter(({ language }) => language === "json");
  const { version } = JSON.parse(readPage("package.json")) as { version: string };
  for (const { text } of json) expect(JSON.parse(`{ ${text} }`)).toBeTypeOf("object");
  const named = json.flatMap(({ text }) => [...text.matchAll(/npm:hathi@\^([\d.]+)/g)].map(([, number]) => number));
  expect(new Set(named)).toEqual(new Set([version]));
});

test("there is no code of a kind that no test looks at", () => {
  const kinds = listPages().flatMap((path) => blocksOf(readPage(path)).map(({ language }) => language));
  // sh: shell-blocks.test.ts and readme.test.ts; dockerfile, yaml, ini, text: deployment.test.ts; js: whole projects;
  // typescript: signatures, which reference.test.ts compares with the source.
  const known = ["ts", "js", "sql", "crontab", "json", "sh", "dockerfile", "yaml", "ini", "text", "typescript"];
  expect(kinds.filter((kind) => !known.includes(kind))).toEqual([]);
});
