import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { makeProject } from "../support/project.ts";

/* `test/drop-in/project/src/names.ts` uses every public name of Graphile Worker 0.18. It compiles with the original and with ours. */

vi.setConfig({ testTimeout: 120_000 });

const root = fileURLToPath(new URL("../..", import.meta.url));
const original = join(root, "test/compat/node_modules/graphile-worker/dist");
const program = join(root, "test/drop-in/project/src/names.ts");
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

/** What the compiler says about the program when `graphile-worker` is that file. */
async function complaintsWith(entry: string): Promise<string> {
  const { folder } = await makeProject();
  const config = join(folder, "tsconfig.json");
  await writeFile(
    config,
    JSON.stringify({
      extends: join(root, "test/drop-in/project/tsconfig.json"),
      compilerOptions: {
        noEmit: true,
        rootDir: "/",
        allowImportingTsExtensions: true,
        typeRoots: [join(root, "node_modules/@types")],
        paths: { "graphile-worker": [entry] },
      },
      include: [program, join(dirname(program), "payloads.ts")],
    }),
  );
  return await promisify(execFile)(process.execPath, [tsc, "-p", config]).then(
    () => "",
    ({ stdout }: { stdout: string }) => stdout,
  );
}

test("a program that uses every public name of the original compiles with ours as it does with the original", async () => {
  const [theirs, ours] = await Promise.all([
    complaintsWith(join(original, "index.d.ts")),
    complaintsWith(join(root, "src/index.ts")),
  ]);
  expect({ theirs, ours }).toEqual({ theirs: "", ours: "" });
});

test("the program leaves no name of the original out", async () => {
  const files = ["index.d.ts", "interfaces.d.ts"];
  const texts = await Promise.all(files.map((file) => readFile(join(original, file), "utf8")));
  const declared = texts.flatMap((text) =>
    [...text.matchAll(/^export (?:declare )?(?:interface|type|const|function) ([\w$]+)/gm)].map(([, name]) => name!),
  );
  const listed = [...texts[0]!.matchAll(/^export (?:type )?\{ ([^}]+) \}/gm)].flatMap(([, names]) =>
    names!.split(", "),
  );
  const events = [...texts[0]!.matchAll(/^ {8}interface (\w+Event) /gm)].map(([, name]) => `GraphileWorker.${name}`);
  const used = await readFile(program, "utf8");
  const names = [...new Set([...declared, ...listed, ...events])];
  expect(names.length).toBeGreaterThan(70);
  expect(names.filter((name) => !new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}\\b`).test(used))).toEqual([]);
});
