import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test, vi } from "vitest";
import { hasProgram } from "../support/has-program.ts";
import { makeProject, type Project } from "../support/project.ts";

// Several processes of npm on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const hasGit = hasProgram("git");
beforeEach(({ skip }) => skip(!hasGit, "git is not installed here, so nothing can be released"));

const scriptText = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url)), "utf8");
const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
const changelog = "# Changes\n\n## 0.2.0 (not released yet)\n\n- Something new.\n\n## 0.1.0 (2026-01-01)\n";

interface Repository extends Project {
  git(...args: string[]): string;
  release(...args: string[]): { status: number | null; output: string };
  read(name: string): string;
}

/** A repository with what a release touches; its check and build only say that they ran. */
async function makeRepository(files: Readonly<Record<string, string>> = {}): Promise<Repository> {
  const peers = { "@hathi/embedded": "^0.1.0" };
  const main = { name: "hathi", version: "0.1.0", peerDependencies: peers, files: ["index.js"] };
  const embedded = { name: "@hathi/embedded", version: "0.1.0" };
  const project = await makeProject({
    "package.json": json(main),
    "index.js": "",
    "packages/embedded/package.json": json(embedded),
    "package-lock.json": json({
      ...{ name: "hathi", version: "0.1.0", lockfileVersion: 3 },
      packages: {
        "": { name: "hathi", version: "0.1.0", peerDependencies: peers },
        "node_modules/other": { version: "0.1.0" },
        "packages/embedded": embedded,
      },
    }),
    "src/version.ts": 'export const version = "0.1.0";\n',
    "CHANGELOG.md": changelog,
    "README.md": '"graphile-worker": "npm:hathi@^0.1.0"\n',
    "scripts/release.mjs": scriptText("release.mjs"),
    "scripts/install-private.mjs": scriptText("install-private.mjs"),
    "scripts/check.mjs": 'console.log("checked");',
    "scripts/build.mjs":
      'import { readFileSync } from "node:fs"; console.log("built " + readFileSync("src/version.ts", "utf8"));',
    "scripts/snapshot-release.mjs":
      'import { mkdirSync, writeFileSync } from "node:fs"; mkdirSync("released"); writeFileSync("released/index.js", "");',
    ...files,
  });
  const run = (command: string, args: readonly string[]) => {
    const names = { GIT_AUTHOR_NAME: "Ada", GIT_COMMITTER_NAME: "Ada" };
    const addresses = { GIT_AUTHOR_EMAIL: "ada@example.com", GIT_COMMITTER_EMAIL: "ada@example.com" };
    const env = { ...process.env, ...names, ...addresses };
    return spawnSync(command, args, { cwd: project.folder, encoding: "utf8", env });
  };
  const git = (...args: string[]): string => run("git", args).stdout.trim();
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "Begin");
  return Object.assign(project, {
    git,
    release: (...args: string[]) => {
      const { status, stdout, stderr } = run(process.execPath, ["scripts/release.mjs", ...args]);
      return { status, output: stdout + stderr };
    },
    read: (name: string) => readFileSync(project.path(name), "utf8"),
  });
}

test("a dry run checks, builds, shows what would be published, and leaves everything as it was", async () => {
  const repository = await makeRepository();
  const lockTime = () => Math.round(statSync(repository.path("package-lock.json")).mtimeMs);
  const before = lockTime();
  const { status, output } = repository.release("0.2.0", "--dry-run");
  expect(status, output).toBe(0);
  const builds = [...output.matchAll(/^built .*"(.*)";$/gm)].map(([, version]) => version);
  expect(builds).toEqual(["0.2.0", "0.1.0"]);
  expect(lockTime()).toBe(before);
  for (const part of ["checked", "+ @hathi/embedded@0.2.0", "+ hathi@0.2.0"]) expect(output).toContain(part);
  expect(repository.git("status", "--porcelain")).toBe("");
  expect(repository.git("tag")).toBe("");
  expect(repository.git("log", "--format=%s")).toBe("Begin");
});

test("a release names its version everywhere, keeps its build, and is one commit with a tag", async () => {
  const repository = await makeRepository();
  const { status, output } = repository.release("0.2.0");
  expect(status, output).toBe(0);
  const { read } = repository;
  expect(JSON.parse(read("package.json"))).toMatchObject({
    version: "0.2.0",
    peerDependencies: { "@hathi/embedded": "^0.2.0" },
  });
  expect(JSON.parse(read("packages/embedded/package.json"))).toMatchObject({ version: "0.2.0" });
  expect(JSON.parse(read("package-lock.json"))).toMatchObject({
    version: "0.2.0",
    packages: {
      "": { version: "0.2.0", peerDependencies: { "@hathi/embedded": "^0.2.0" } },
      "node_modules/other": { version: "0.1.0" },
      "packages/embedded": { version: "0.2.0" },
    },
  });
  expect(read("src/version.ts")).toBe('export const version = "0.2.0";\n');
  expect(read("README.md")).toContain("npm:hathi@^0.2.0");
  expect(read("CHANGELOG.md")).toMatch(/^## 0\.2\.0 \(\d{4}-\d\d-\d\d\)$/m);
  expect(repository.git("log", "--format=%s")).toBe("Release 0.2.0\nBegin");
  expect(repository.git("tag", "--points-at", "HEAD")).toBe("v0.2.0");
  expect(repository.git("show", "--name-only", "--format=")).toContain("released/index.js");
  expect(repository.git("status", "--porcelain")).toBe("");
  expect(repository.release("0.2.0")).toMatchObject({ status: 1, output: "There is a tag v0.2.0 already.\n" });
});

test.each([
  ["a changelog without a section for it", { "CHANGELOG.md": "# Changes\n" }, "(not released yet)"],
  ["a check that fails", { "scripts/check.mjs": "process.exit(1);" }, "'node scripts/check.mjs --no-install' failed."],
])("%s stops a release, and the files are put back", async (_what, files, words) => {
  const repository = await makeRepository(files);
  for (const args of [["0.2.0"], ["0.2.0", "--dry-run"]]) {
    const { status, output } = repository.release(...args);
    expect(status).toBe(1);
    expect(output).toContain(words);
    expect(repository.git("status", "--porcelain")).toBe("");
    expect(repository.git("log", "--format=%s")).toBe("Begin");
  }
});

test("a release needs a version and a clean working tree", async () => {
  const repository = await makeRepository();
  const usage = { status: 1, output: "Name the version: npm run release -- 0.2.0 [--dry-run]\n" };
  expect(repository.release("--dry-run")).toEqual(usage);
  expect(repository.release("next")).toEqual(usage);
  await repository.write("index.js", "1;");
  expect(repository.release("0.2.0")).toEqual({ status: 1, output: "Commit or stash your changes first.\n" });
});
