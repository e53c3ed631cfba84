import { execFile } from "node:child_process";
import { chmod, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type ProgramEnd, type RunningProgram, startCommand } from "../support/program.ts";
import { type Registry, startRegistry } from "./registry.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const project = fileURLToPath(new URL("project", import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
const exec = promisify(execFile);

/** The project, installed with one of the two under the name `graphile-worker`. */
export interface Side {
  readonly name: "original" | "ours";
  /** The project's own folder, with the TypeScript files in `src`. */
  readonly folder: string;
  /** Starts a script of the compiled project. */
  node(script: string, env: Env): RunningProgram;
  /** Starts the command that the package installs, in a folder of the project (default: the compiled one). */
  command(args: readonly string[], env: Env, cwd?: string): RunningProgram;
}

export type Env = Readonly<Record<string, string>>;

export interface Sides {
  readonly original: Side;
  readonly ours: Side;
  /** What the compiler said, by side. */
  readonly complaints: Readonly<Record<Side["name"], string>>;
  /** Installs what a project's package.json asks for, where `hathi` is published. */
  npmInstall(project: string): Promise<void>;
  remove(): Promise<void>;
}

/** Installs the same files twice, compiles them, and changes nothing but one line of package.json. */
export async function installSides(): Promise<Sides> {
  const folder = await mkdtemp(join(tmpdir(), "hathi-drop-in-"));
  await chmod(folder, 0o755);
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { name: string; version: string };
  const registry = await startRegistry(await pack(folder), manifest);
  const [original, ours] = await Promise.all([
    install("original", folder, "0.18.0", registry),
    install("ours", folder, "npm:hathi", registry),
  ]);
  const [fromOriginal, fromOurs] = await Promise.all([compile(original), compile(ours)]);
  return {
    original,
    ours,
    complaints: { original: fromOriginal, ours: fromOurs },
    npmInstall: (project) => npmInstall(project, registry),
    async remove() {
      await registry.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Packs what is built: `npm test` builds before it tests. */
async function pack(into: string): Promise<string> {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", into];
  const { stdout } = await exec("npm", args, { cwd: root });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  return join(into, packed!.filename);
}

async function install(name: Side["name"], into: string, version: string, registry: Registry): Promise<Side> {
  const folder = join(into, name);
  await cp(project, folder, { recursive: true });
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  manifest.dependencies["graphile-worker"] = version;
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await npmInstall(folder, registry);
  const build = join(folder, "build");
  return {
    name,
    folder,
    node: (script, env) => startCommand(process.execPath, [script], { cwd: build, env, input: "" }),
    command: (args, env, cwd = build) =>
      startCommand(join(folder, "node_modules/.bin/graphile-worker"), args, { cwd, env, input: "" }),
  };
}

async function npmInstall(folder: string, { url }: Registry): Promise<void> {
  const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts", "--loglevel=error"];
  await exec("npm", [...args, `--registry=${url}`], { cwd: folder });
}

async function compile({ folder }: Side): Promise<string> {
  const complaint = await exec(process.execPath, [tsc, "-p", "."], { cwd: folder }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  for (const name of ["crontab", "schema.sql", "tasks/convert", "tasks/legacy.cjs", "tasks/note.txt"]) {
    await cp(join(folder, "src", name), join(folder, "build", name));
  }
  return complaint;
}

export function endOf({ code, signal }: ProgramEnd): object {
  return { code, signal };
}
