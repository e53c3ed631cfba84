import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { linkPackage } from "./packed.ts";
import { root } from "./pages.ts";

const compilerOptions = {
  target: "es2022",
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  types: ["node"],
  rootDir: ".",
  outDir: "out",
};

/** Makes a project with the built package in it of these files, compiles it into `out`, and gives what the compiler says. */
export async function compile(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  await linkPackage(folder, ["pg", "@types", "graphile-config"]);
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return promisify(execFile)(process.execPath, [tsc, "-p", folder], { cwd: folder })
    .then(({ stdout }) => stdout)
    .catch(({ stdout }: { stdout: string }) => stdout);
}
