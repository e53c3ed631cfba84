// Builds both packages into dist.
import { spawnSync } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

build(join(root, "packages/embedded"), compile);
build(root, (folder, output) => {
  compile(folder, output, "--emitDeclarationOnly");
  run(join(root, "scripts/bundle.mjs"), output);
  for (const folder of ["", "dashboard/server", "forward", "metrics", "testing"])
    writeRequireEntry(join(output, folder));
});

/**
 * What `require` gets: the same modules and types, never a second copy. It is a file of its own because Node 22.12 warns of a
 * `require` of ES modules outside of node_modules only, and because older compilers refuse it, hence the comment.
 */
function writeRequireEntry(folder) {
  writeFileSync(join(folder, "index.cjs"), 'module.exports = require("./index.js");\n');
  writeFileSync(join(folder, "index.d.cts"), '// @ts-ignore\nexport * from "./index.js";\n');
}

/** The old dist stays until the new one is complete, so that whoever runs from it never sees half of it. */
function build(folder, make) {
  const output = join(folder, "dist.next");
  rmSync(output, { recursive: true, force: true });
  make(folder, output);
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  renameSync(output, join(folder, "dist"));
}

function compile(folder, output, ...flags) {
  run(tsc, "-p", join(folder, "tsconfig.build.json"), "--outDir", output, ...flags);
}

/** An error fails the build, but what was written may still help whoever is looking for it. */
function run(...args) {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
