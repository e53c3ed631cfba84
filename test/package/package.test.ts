import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freshDatabase } from "../support/database.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/** Packs what is built: `npm test` builds before it tests. */
async function pack(folder: string, into: string): Promise<{ path: string; files: string[] }> {
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", into], {
    cwd: folder,
  });
  const [packed] = JSON.parse(stdout) as Packed[];
  return { path: join(into, packed!.filename), files: packed!.files.map(({ path }) => path) };
}

describe("the published package", () => {
  let folder: string;
  let hathi: { path: string; files: string[] };
  let embedded: { path: string; files: string[] };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "hathi-package-"));
    hathi = await pack(root, folder);
    embedded = await pack(join(root, "packages/embedded"), folder);
    return () => rm(folder, { recursive: true, force: true });
  }, 60_000);

  test("holds what a user needs and nothing else", () => {
    const outside = hathi.files.filter((path) => !path.startsWith("dist/"));
    expect(outside.toSorted()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "package.json"]);
    expect(hathi.files).toEqual(
      expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "dist/cli/main.js", "dist/schema.sql"]),
    );
    expect(hathi.files.filter((path) => /\.test\.|\.ts$/.test(path) && !/\.d\.c?ts$/.test(path))).toEqual([]);

    const outsideEmbedded = embedded.files.filter((path) => !path.startsWith("dist/"));
    expect(outsideEmbedded.toSorted()).toEqual(["LICENSE", "README.md", "package.json"]);
  });

  test.each(["", "packages/embedded"])("is put together as package managers expect ('%s')", async (name) => {
    const pkgDir = join(root, name);
    const pkg = JSON.parse(await readFile(join(pkgDir, "package.json"), "utf8")) as Record<string, unknown>;
    const { messages } = await publint({ pkgDir, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  test("installs in an empty folder, and works there", { timeout: 180_000 }, async () => {
    const db = await freshDatabase({ migrated: false });
    const project = await mkdtemp(join(tmpdir(), "hathi-project-"));
    onTestFinished(() => rm(project, { recursive: true, force: true }));
    await writeFile(join(project, "package.json"), '{ "type": "module", "private": true }');
    await run(
      "npm",
      ["install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts", hathi.path, embedded.path],
      {
        cwd: project,
      },
    );
    await writeFile(
      join(project, "use.mjs"),
      `import { makeWorkerUtils, runOnce } from "hathi";
       const connectionString = process.argv[2];
       const utils = await makeWorkerUtils({ connectionString });
       await utils.addJob("greet", { name: "Ada" });
       await utils.release();
       await runOnce({ connectionString, taskList: { greet: ({ name }) => console.log("greeting " + name) } });`,
    );
    const { stdout } = await run(process.execPath, ["use.mjs", db.url], { cwd: project });
    expect(stdout).toContain("greeting Ada");

    // Both names of the command are there.
    for (const name of ["hathi", "graphile-worker"]) {
      const { stdout: version } = await run(join(project, "node_modules/.bin", name), ["--version"], { cwd: project });
      expect(version.trim()).toMatch(/^\d+\.\d+\.\d+/);
    }
  });
});
