// Builds both packages into dist and puts beside the code what the compiler does not carry over.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

const isClean = [compile("packages/embedded"), compile(".")].every(Boolean);
cpSync(join(root, "src/db/migrations"), join(root, "dist/db/migrations"), { recursive: true });
cpSync(join(root, "src/db/schema.sql"), join(root, "dist/db/schema.sql"));
const main = join(root, "dist/cli/main.js");
if (existsSync(main)) chmodSync(main, 0o755);
process.exitCode = isClean ? 0 : 1;

function compile(folder) {
  rmSync(join(root, folder, "dist"), { recursive: true, force: true });
  const project = join(root, folder, "tsconfig.build.json");
  return spawnSync(process.execPath, [tsc, "-p", project], { stdio: "inherit" }).status === 0;
}
