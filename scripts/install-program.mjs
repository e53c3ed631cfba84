import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * A few tests need a real program beside Node. Installs it where a machine is made for such things; elsewhere gives the sentence
 * that says what the run does not show.
 */
export function installProgram(program, name) {
  if (isThere(program)) return undefined;
  const reason = whyInstall();
  if (reason !== undefined && succeeds("apt-get", "--version")) {
    console.log(`Installing ${program} with apt-get (${reason}).`);
    const install = () => succeeds("apt-get", "install", "-y", "--no-install-recommends", program);
    if (!install() && succeeds("apt-get", "update")) install();
    if (isThere(program)) return undefined;
  }
  return `${name} is missing and was not installed, so the tests that need it were skipped: as root, 'apt-get install ${program}' installs it.`;
}

/** Why programs may be installed here without being asked: as root, on a build machine or in a container. Never on a person's machine. */
export function whyInstall(env = process.env, uid = process.getuid?.(), exists = existsSync) {
  if (uid !== 0) return undefined;
  if (env.CI && env.CI !== "false") return "as root, and CI is set";
  const isContainer = env.container || exists("/.dockerenv") || exists("/run/.containerenv");
  return isContainer ? "as root, in a container" : undefined;
}

/** Looked for first, since some programs take any argument as an order to start. */
function isThere(program) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"];
  if (folders.some((folder) => existsSync(join(folder, program)))) return true;
  return [program, `/usr/sbin/${program}`].some((path) => succeeds(path, "--version"));
}

function succeeds(command, ...args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
