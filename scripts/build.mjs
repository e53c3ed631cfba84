// Builds both packages into dist and puts beside the code what the compiler does not carry over.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

build(join(root, "packages/embedded"));
build(root, (output) => {
  cpSync(join(root, "src/db/migrations"), join(output, "db/migrations"), { recursive: true });
  cpSync(join(root, "src/db/schema.sql"), join(output, "db/schema.sql"));
  const main = join(output, "cli/main.js");
  if (existsSync(main)) chmodSync(main, 0o755);
});

/** The old dist stays until the new one is complete, so that whoever runs from it never sees half of it. */
function build(folder, complete = () => undefined) {
  const output = join(folder, "dist.next");
  rmSync(output, { recursive: true, force: true });
  const args = [tsc, "-p", join(folder, "tsconfig.build.json"), "--outDir", output];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  // Type errors fail the build, but what was written may still help whoever is looking for them.
  if (status !== 0) process.exitCode = 1;
  complete(output);
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  renameSync(output, join(folder, "dist"));
}
