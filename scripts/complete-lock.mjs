// Adds the optional packages of other platforms to the lock files, and takes the addresses of registries out. Where a registry
// lacks such a package, npm leaves it out of the lock; then `npm ci` refuses the lock, and an install elsewhere lacks native parts.
// An entry needs neither an address nor a checksum. `--check` changes nothing and fails if a lock is incomplete. Other arguments are the
// lock files; all of the repository without them.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const systems = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const processors = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const isCheck = given.includes("--check");
const named = given.filter((argument) => argument !== "--check");
const files = named.length > 0 ? named.map((file) => resolve(file)) : listLocks();

for (const file of files) {
  const before = readFileSync(file, "utf8");
  const { packages, ...head } = JSON.parse(before);
  const changes = [...removeAddresses(packages), ...addMissing(packages)];
  if (changes.length === 0) continue;
  const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, "en")));
  const indent = /^( +)"/m.exec(before)[1];
  if (isCheck) process.exitCode = 1;
  else writeFileSync(file, `${JSON.stringify({ ...head, packages: sorted }, null, indent)}\n`);
  const verdict = isCheck ? "is incomplete; run 'node scripts/complete-lock.mjs'" : "completed";
  console.log(`${relative(root, file)} ${verdict}: ${changes.join(", ")}`);
}

function listLocks() {
  const { stdout } = spawnSync("git", ["ls-files", "*package-lock.json"], { cwd: root, encoding: "utf8" });
  return stdout
    .trim()
    .split("\n")
    .map((file) => resolve(root, file));
}

function removeAddresses(packages) {
  const found = Object.entries(packages).filter(([, { resolved = "" }]) => /^https?:/.test(resolved));
  for (const [, entry] of found) delete entry.resolved;
  return found.map(([path]) => `address of ${path}`);
}

function addMissing(packages) {
  const added = [];
  for (const [path, { dev, optionalDependencies = {} }] of Object.entries(packages)) {
    // What a linked folder outside of the project needs is in that folder's own lock.
    if (path.startsWith("..")) continue;
    for (const [name, range] of Object.entries(optionalDependencies)) {
      if (isThere(packages, path, name)) continue;
      const place = packages[`node_modules/${name}`] ? `${path}/node_modules/${name}` : `node_modules/${name}`;
      packages[place] = entryFor(name, range, dev);
      added.push(name);
    }
  }
  return added;
}

/** As Node looks for it: from the package's own node_modules up to the root's. */
function isThere(packages, path, name) {
  const steps = path.split("/node_modules/");
  const places = steps.map((_, index) => `${steps.slice(0, index + 1).join("/node_modules/")}/node_modules/${name}`);
  return [...places, `node_modules/${name}`].some((place) => packages[place.replace(/^\//, "")]);
}

/** The registry may not know the package, but its name says what it is for. */
function entryFor(name, range, dev) {
  const words = name.replace("windows", "win32").split(/[/_-]/);
  const os = systems.filter((system) => words.includes(system));
  const cpu = processors.filter((processor) => words.includes(processor));
  const isMusl = words.some((word) => word.startsWith("musl"));
  const isGlibc = words.some((word) => word.startsWith("gnu"));
  return {
    version: range.replace(/^[\^~=v]+/, ""),
    ...(cpu.length > 0 && { cpu }),
    ...(dev && { dev }),
    ...(os.includes("linux") && (isMusl || isGlibc) && { libc: [isMusl ? "musl" : "glibc"] }),
    optional: true,
    ...(os.length > 0 && { os }),
  };
}
