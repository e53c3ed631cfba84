import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Logger } from "../../src/logger.ts";
import { getTasks } from "../../src/runner/get-tasks.ts";

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hathi-tasks-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

function recordingLogger(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const logger = new Logger(() => (level, message) => void lines.push(`${level}: ${message}`));
  return { logger, lines };
}

async function load(path: string): Promise<{ results: Record<string, unknown>; lines: string[] }> {
  const { logger, lines } = recordingLogger();
  const { tasks, release } = await getTasks({ logger, connectionString: "unused" }, path);
  await release();
  const results: Record<string, unknown> = {};
  for (const [name, task] of Object.entries(tasks)) results[name] = await task?.({}, {} as never);
  return { results, lines };
}

const returning = (text: string) => `export default () => "${text}";`;

test("every module kind is a task, and nested folders become part of the name", async () => {
  const folder = await folderWith({
    "plain.js": 'module.exports = () => "commonjs";',
    "a/b/deep.mjs": returning("module"),
    "compiled.cjs": 'exports.__esModule = true; exports.default = () => "compiled";',
    "typed.ts": 'enum Kind { A = "typescript" }\nexport default (payload: object): string => Kind.A;',
    "typed_module.mts": 'export default (payload: object): string => "mts" as string;',
  });
  const { results } = await load(folder);
  expect(results).toEqual({
    "a/b/deep": "module",
    compiled: "compiled",
    plain: "commonjs",
    typed: "typescript",
    typed_module: "mts",
  });
});
