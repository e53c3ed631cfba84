import { symlink } from "node:fs/promises";
import { expect, test } from "vitest";
import { getTasks } from "../../src/runner/get-tasks.ts";
import { rememberingLogger } from "../support/log.ts";
import { makeProject } from "../support/project.ts";

async function load(taskPath: string, preset: GraphileConfig.Preset = {}) {
  const { logger, lines } = rememberingLogger();
  const { tasks, release } = await getTasks({ logger, preset }, taskPath);
  await release();
  const results: Record<string, unknown> = {};
  for (const [name, task] of Object.entries(tasks)) results[name] = await task?.({}, {} as never);
  return { names: Object.keys(tasks), results, log: lines.map(({ level, message }) => `${level}: ${message}`) };
}

const returning = (text: string): string => `export default () => "${text}";`;

test("every kind of module is a task, and nested folders become part of its name, in order", async () => {
  const { folder } = await makeProject({
    "zebra.js": 'module.exports = () => "commonjs";',
    "a/b/deep.mjs": returning("module"),
    "compiled.cjs": 'exports.__esModule = true; exports.default = () => "compiled";',
    "typed.ts": 'enum Kind { A = "typescript" }\nexport default (payload: object): string => Kind.A;',
    "typed_module.mts": 'export default (payload: object): string => "mts" as string;',
  });
  const { names, results } = await load(folder);
  expect(names).toEqual(["a/b/deep", "compiled", "typed", "typed_module", "zebra"]);
  expect(results).toEqual({
    "a/b/deep": "module",
    compiled: "compiled",
    typed: "typescript",
    typed_module: "mts",
    zebra: "commonjs",
  });
});

test("of several files for one task the first extension in the list wins", async () => {
  const { folder } = await makeProject({ "task.js": 'module.exports = () => "js";', "task.mjs": returning("mjs") });
  expect((await load(folder)).results).toEqual({ task: "js" });
  const preset = { worker: { fileExtensions: [".mjs", ".js"] } };
  expect((await load(folder, preset)).results).toEqual({ task: "mjs" });
  expect((await load(folder, { worker: { fileExtensions: [".mjs"] } })).results).toEqual({ task: "mjs" });
});

test("files that cannot be tasks are left out, and the log says so", async () => {
  const { folder, path } = await makeProject({
    "good.mjs": returning("good"),
    "bad name.mjs": returning("bad"),
    "bad folder/x.mjs": returning("bad"),
    "notes.md": "# not a task",
    "good.test.mjs": returning("test"),
  });
  await symlink(path("good.mjs"), path("linked.mjs"));
  await symlink(path("nowhere"), path("dangling.mjs"));
  const { results, log } = await load(folder);
  expect(results).toEqual({ good: "good", linked: "good" });
  expect(log).toContainEqual(expect.stringMatching(/^info: Ignoring file .*bad name\.mjs/));
  expect(log).toContainEqual(expect.stringMatching(/^info: Ignoring folder .*bad folder/));
  expect(log).toContainEqual(expect.stringMatching(/^warning: No task for 'notes'/));
});

test("helpers beside the tasks are no tasks: hidden files, a leading _, tests, and type declarations", async () => {
  const task = "export default () => undefined;";
  const project = await makeProject({
    "real.mjs": task,
    "_shared.mjs": "export const shared = 1;",
    "_lib/deep.mjs": "export const deep = 1;",
    ".hidden.mjs": "throw new Error('loaded');",
    "real.test.mjs": "throw new Error('loaded');",
    "real.spec.ts": "throw new Error('loaded');",
    "__tests__/real.mjs": "throw new Error('loaded');",
    "types.d.ts": "export interface A {}",
    "more.d.mts": "export interface A {}",
  });
  const { names, log } = await load(project.folder);
  expect(names).toEqual(["real"]);
  expect(log).toEqual([]);
});

test("a single file holds a list of tasks, as named exports or as an object", async () => {
  const { path } = await makeProject({
    "named.mjs": 'export const one = () => 1; export const two = () => 2; export const version = "3";',
    "object.cjs": "module.exports = { one: () => 1, two: () => 2 };",
    "default.mjs": "export default { one: () => 1, two: () => 2 };",
    "typed.ts": "export default { one: (a: unknown) => 1, two: () => 2 } as Record<string, (a: unknown) => number>;",
    "compiled.cjs": "exports.__esModule = true; exports.one = () => 1; exports.two = () => 2;",
  });
  for (const name of ["named.mjs", "object.cjs", "default.mjs", "typed.ts", "compiled.cjs"]) {
    expect((await load(path(name))).results, name).toEqual({ one: 1, two: 2 });
  }
  expect((await load(path("named.mjs"))).log[0]).toMatch(/^warning: Not a task: 'version' of .* is a string/);
});

test("a plugin may load what the built-in ones do not know", async () => {
  const { folder } = await makeProject({ "greet.txt": "Good morning" });
  const plugin: GraphileConfig.Plugin = {
    name: "LoadTextPlugin",
    worker: {
      hooks: {
        loadTaskFromFiles(_ctx, event) {
          if (event.fileDetailsList.some(({ extension }) => extension === ".txt")) {
            event.handler = async () => [event.taskIdentifier];
          }
        },
      },
    },
  };
  expect((await load(folder, { plugins: [plugin] })).results).toEqual({ greet: ["greet"] });
});

test("a path that is not there is an error that names it", async () => {
  await expect(load("/no/such/folder")).rejects.toThrow(
    "Could not find tasks to execute - taskDirectory '/no/such/folder' does not exist.",
  );
});
