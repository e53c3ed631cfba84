import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { build } from "rolldown";

/**
 * A plugin that replaces the modules that read files of ours at run time with modules that contain them, and the licences of
 * the packages that come with them.
 */
export async function inlineFiles(source, tsconfig, app) {
  const thread = await bundleThread(source("recovery/heart-thread.ts"), tsconfig);
  const codeByFile = new Map([
    [source("db/migration-files.ts"), migrationsModule(source("db/migrations"))],
    [source("recovery/spawn-heart-thread.ts"), threadModule(thread.code)],
    [source("dashboard/server/app-files.ts"), appModule(app)],
  ]);
  const load = (id) => (codeByFile.has(id) ? { code: codeByFile.get(id), moduleType: "js" } : null);
  return { plugin: { name: "inline-files", load }, licences: licencesOf(thread.modules) };
}

function migrationsModule(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  const files = names.sort().map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));
  return `const files = ${JSON.stringify(files)};\nexport const readMigrationFiles = () => files;`;
}

function appModule(folder) {
  const names = ["index.html", ...readdirSync(join(folder, "assets")).map((name) => `assets/${name}`)];
  const files = names.map((name) => ({ name, base64: readFileSync(join(folder, name)).toString("base64") }));
  return `const files = ${JSON.stringify(files)};\nexport const readAppFiles = () => files;`;
}

function threadModule(code) {
  return `import { Worker } from "node:worker_threads";
const code = ${JSON.stringify(code)};
export const spawnHeartThread = (workerData) => new Worker(code, { eval: true, workerData, execArgv: [] });`;
}

/** A script with everything in it, `pg` included: beside a bundled application there may be no packages to load. */
async function bundleThread(input, tsconfig) {
  const builtin = new RegExp(`^(node:|(${builtinModules.join("|")})$)`);
  const { output } = await build({
    input,
    platform: "node",
    tsconfig,
    write: false,
    external: [builtin, "pg-native", "cloudflare:sockets"],
    output: { format: "cjs", minify: true },
  });
  if (output.length !== 1) throw new Error(`The heartbeat thread must be one file, not ${output.length}.`);
  return { code: output[0].code, modules: output[0].moduleIds };
}

function licencesOf(modules) {
  const folders = new Set(modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []));
  return [...folders].sort().map(licenceOf).join("\n\n");
}

function licenceOf(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const by = typeof author === "object" ? author.name : author;
  const file = ["LICENSE", "LICENSE.md", "LICENCE"].map((file) => join(folder, file)).find((path) => existsSync(path));
  const text = file ? readFileSync(file, "utf8").trim() : `Copyright ${by}`;
  return `${name} ${version} (${license})\n\n${text}\n`;
}
