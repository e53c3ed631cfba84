// Prepares a release of both packages: `npm run release -- 0.2.0`. With `--dry-run` every file is put back at the end.
// 1. The working tree must be clean. 2. The version goes into both packages, the lock files, src/version.ts, the documents and CHANGELOG.md.
// 3. Build and check. 4. `npm publish --dry-run` shows what would be published. 5. The build is kept for the rehearsal of upgrades, and all is
// committed and tagged. The pushed tag publishes from CI (.github/workflows/release.yml), which can vouch for it: npm's provenance.
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { installPrivate } from "./install-private.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const isDry = given.includes("--dry-run");
const [version] = given.filter((argument) => !argument.startsWith("--"));
const folders = ["packages/embedded", "."];
const edited = new Map();

try {
  release();
} catch (error) {
  putBack();
  console.error(error.message);
  process.exitCode = 1;
}

function release() {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version ?? "")) {
    throw new Error("Name the version: npm run release -- 0.2.0 [--dry-run]");
  }
  if (read("git", "status", "--porcelain") !== "") throw new Error("Commit or stash your changes first.");
  if (read("git", "tag", "--list", `v${version}`) !== "") throw new Error(`There is a tag v${version} already.`);
  // Before the lock files change: ours are the only versions in them that will.
  installPrivate();
  const setVersion = (text) =>
    text
      .replace(/^( {2}"version": )"[^"]+"/m, `$1"${version}"`)
      .replace(/("@hathi\/embedded": )"\^[^"]+"/, `$1"^${version}"`);
  for (const folder of folders) edit(`${folder}/package.json`, setVersion);
  edit("src/version.ts", (text) => text.replace(/"[^"]+"/, `"${version}"`));
  edit("CHANGELOG.md", dateChangelog);
  for (const name of read("git", "ls-files", "*package-lock.json").split("\n")) edit(name, lockVersion);
  for (const name of read("git", "grep", "--name-only", "npm:hathi@^", "--", "*.md").split("\n")) {
    edit(name, (text) => text.replaceAll(/(npm:hathi@\^)[\d.]+(-[\w.]+)?/g, `$1${version}`));
  }
  show("node", "scripts/build.mjs");
  show("node", "scripts/check.mjs", "--no-install");
  for (const folder of folders) {
    show("npm", "publish", `./${folder}`, "--dry-run", "--access", "public", "--ignore-scripts", "--tag", "next");
  }
  if (isDry) {
    putBack();
    show("node", "scripts/build.mjs");
    return console.log(`A release of ${version} would work. Nothing was published, and no file is changed.`);
  }
  show("node", "scripts/snapshot-release.mjs");
  read("git", "add", "--all");
  read("git", "commit", "--message", `Release ${version}`);
  read("git", "tag", "--annotate", `v${version}`, "--message", `Version ${version}`);
  console.log(`Version ${version} is committed and tagged. To publish it: git push --follow-tags`);
}

function edit(name, change) {
  const text = readFileSync(root + name, "utf8");
  const { atime, mtime } = statSync(root + name);
  if (!edited.has(name)) edited.set(name, { text, atime, mtime });
  writeFileSync(root + name, change(text));
}

/** With their times: a lock file that is newer than what is installed would have it installed again. */
function putBack() {
  for (const [name, { text, atime, mtime }] of edited) {
    writeFileSync(root + name, text);
    utimesSync(root + name, atime, mtime);
  }
}

/** The section on top is the next release. */
function dateChangelog(text) {
  const [heading] = /^## .*$/m.exec(text) ?? [];
  if (!heading?.endsWith("(not released yet)")) {
    throw new Error("CHANGELOG.md must begin with a section '## <version> (not released yet)'.");
  }
  return text.replace(heading, `## ${version} (${new Date().toISOString().slice(0, 10)})`);
}

/** Nothing but our own versions changes, so the registry need not be asked. */
function lockVersion(text) {
  const lock = JSON.parse(text);
  const ours = Object.values(lock.packages).filter(({ name }) => name === "hathi" || name === "@hathi/embedded");
  if (lock.name === "hathi") ours.push(lock);
  for (const entry of ours) {
    if (entry.version) entry.version = version;
    if (entry.peerDependencies?.["@hathi/embedded"]) entry.peerDependencies["@hathi/embedded"] = `^${version}`;
  }
  return `${JSON.stringify(lock, null, /^( +|\t)"/m.exec(text)[1])}\n`;
}

function show(command, ...args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) throw new Error(`'${command} ${args.join(" ")}' failed.`);
}

function read(command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`'${command} ${args.join(" ")}' failed: ${stderr}`);
  return stdout.trim();
}
