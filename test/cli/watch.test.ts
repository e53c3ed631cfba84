import { expect, test, vi } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { makeProject, type Project } from "../support/project.ts";
import { until } from "../support/wait.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const saying = (word: string): string => `export default (payload, helpers) => helpers.logger.info("says ${word}");`;

async function watching(
  files: Record<string, string>,
): Promise<{ db: TestDatabase; project: Project; program: RunningProgram }> {
  const db = await freshDatabase();
  const project = await makeProject(files);
  const program = startProgram(["--watch", "-c", db.url], { cwd: project.folder });
  await program.says(/Watching .*tasks/);
  return { db, project, program };
}

const add = (db: TestDatabase, task: string): Promise<unknown> =>
  db.query("select graphile_worker.add_job($1)", [task]);

test("a changed task counts from the next job on, whatever kind of file it is", async () => {
  const { db, project, program } = await watching({
    "tasks/a.mjs": saying("a1"),
    "tasks/b.cjs": "module.exports = (payload, helpers) => helpers.logger.info('says b1');",
    "tasks/c.ts": "export default (payload: unknown, helpers: any): void => helpers.logger.info('says c1');",
  });
  for (const task of ["a", "b", "c"]) await add(db, task);
  await Promise.all([program.says(/says a1/), program.says(/says b1/), program.says(/says c1/)]);
  await project.write("tasks/a.mjs", saying("a2"));
  await project.write("tasks/b.cjs", "module.exports = (payload, helpers) => helpers.logger.info('says b2');");
  await project.write(
    "tasks/c.ts",
    "export default (payload: unknown, helpers: any): void => helpers.logger.info('says c2');",
  );
  await Promise.all(["a", "b", "c"].map((task) => program.says(new RegExp(`Reloaded task '${task}'`))));
  for (const task of ["a", "b", "c"]) await add(db, task);
  await Promise.all([program.says(/says a2/), program.says(/says b2/), program.says(/says c2/)]);
});

test("an added task is run, a removed one no more", async () => {
  const { db, project, program } = await watching({ "tasks/a.mjs": saying("a") });
  await add(db, "group/new");
  await project.write("tasks/group/new.mjs", saying("new"));
  await program.says(/Loaded task 'group\/new'/);
  await program.says(/says new/);
  await project.remove("tasks/group/new.mjs");
  await program.says(/Task 'group\/new' is gone/);
  await add(db, "group/new");
  await add(db, "a");
  await program.says(/says a/);
  await until(async () => (await db.jobs()).length === 1, { what: "the other job is done" });
  expect(await db.jobs()).toMatchObject([{ task_identifier: "group/new", attempts: 0, locked_at: null }]);
});

test("a broken edit is reported with its line, and the last good version keeps running", async () => {
  const { db, project, program } = await watching({ "tasks/a.mjs": saying("one") });
  await project.write("tasks/a.mjs", "export default () => {\n  oops oops\n};\n");
  await program.says(/Could not load .*a\.mjs.*a\.mjs:2\) The last version that worked stays\./);
  await add(db, "a");
  await program.says(/says one/);
  await project.write("tasks/a.mjs", saying("two"));
  await program.says(/Reloaded task 'a'/);
  await add(db, "a");
  await program.says(/says two/);
});

test("a running job finishes on the old code", async () => {
  const slow = (word: string): string => `
    import { existsSync } from "node:fs";
    export default async (payload, helpers) => {
      helpers.logger.info("begun ${word}");
      while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
      helpers.logger.info("ended ${word}");
    };`;
  const { db, project, program } = await watching({ "tasks/slow.mjs": slow("old") });
  await add(db, "slow");
  await program.says(/begun old/);
  await project.write("tasks/slow.mjs", slow("new"));
  await program.says(/Reloaded task 'slow'/);
  await project.write("go", "");
  await program.says(/ended old/);
});

test("a crontab that appears, changes or breaks takes effect, and a broken one leaves the last good one", async () => {
  const { db, project, program } = await watching({ "tasks/a.mjs": saying("a") });
  const known = async (): Promise<string> =>
    (
      await db.query<{ identifier: string }>(
        "select identifier from graphile_worker._private_known_crontabs order by 1",
      )
    )
      .map(({ identifier }) => identifier)
      .join();
  await project.write("crontab", "0 4 1 1 * a ?id=first\n");
  await program.says(/Reloaded the crontab: 1 entry/);
  await until(async () => (await known()) === "first", { what: "the entry is registered" });
  await project.write("crontab", "0 4 1 1 * a ?id=first\nnot a line\n");
  await program.says(/crontab:2:1: [\s\S]*The last crontab that worked stays/);
  await project.write("crontab", "0 4 1 1 * a ?id=first\n0 5 1 1 * a ?id=second\n");
  await program.says(/Reloaded the crontab: 2 entries/);
  await until(async () => (await known()) === "first,second", { what: "the second entry is registered" });
});

test("a single tasks file is followed too", async () => {
  const db = await freshDatabase();
  const list = (word: string): string =>
    `export const a = (payload, helpers) => helpers.logger.info("says ${word}"); export const ${word} = () => undefined;`;
  const project = await makeProject({
    "tasks.mjs": list("one"),
    "hathi.config.mjs": 'export default { worker: { taskDirectory: process.cwd() + "/tasks.mjs" } };',
  });
  const program = startProgram(["-w", "-c", db.url], { cwd: project.folder });
  await program.says(/Watching/);
  await project.write("tasks.mjs", list("two"));
  await program.says(/Reloaded the tasks of/);
  await add(db, "a");
  await add(db, "two");
  await program.says(/says two/);
  await until(async () => (await db.jobs()).length === 0, { what: "all jobs are done" });
});

test("a changed module reloads the tasks that import it, directly or not, and no other", async () => {
  const { db, project, program } = await watching({
    "lib/word.mjs": "export const word = 'one';",
    "lib/phrase.mjs": "import { word } from './word.mjs'; export const phrase = 'says ' + word;",
    "lib/count.ts": "export const count: number = 1;",
    "tasks/esm.mjs":
      "import { phrase } from '../lib/phrase.mjs'; export default (_, h) => h.logger.info('esm ' + phrase);",
    "tasks/typed.ts":
      "import { count } from '../lib/count.js'; export default (_: unknown, h: any) => h.logger.info('typed ' + count);",
    "tasks/cjs.cjs":
      "const { word } = require('./_word.cjs'); module.exports = (_, h) => h.logger.info('cjs ' + word);",
    "tasks/_word.cjs": "exports.word = 'one';",
    "tasks/other.mjs": saying("other"),
  });
  for (const task of ["esm", "typed", "cjs"]) await add(db, task);
  await Promise.all([/esm says one/, /typed 1/, /cjs one/].map((pattern) => program.says(pattern)));
  await project.write("lib/word.mjs", "export const word = 'another';");
  await project.write("lib/count.ts", "export const count: number = 22;");
  await project.write("tasks/_word.cjs", "exports.word = 'another';");
  await Promise.all(["esm", "typed", "cjs"].map((task) => program.says(new RegExp(`Reloaded task '${task}'`))));
  for (const task of ["esm", "typed", "cjs"]) await add(db, task);
  await Promise.all([/esm says another/, /typed 22/, /cjs another/].map((pattern) => program.says(pattern)));
  await project.write("lib/word.mjs", "export const word = 'a third';");
  await until(() => program.stdout().match(/Reloaded task 'esm'/g)?.length === 2, { what: "the second reload" });
  await add(db, "esm");
  await program.says(/esm says a third/);
  expect(program.stdout()).not.toMatch(/task 'other'/);
});
