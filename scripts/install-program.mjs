import { spawnSync } from "node:child_process";

/**
 * A few tests need a real program beside Node. Installs it where that is possible; where it is not, gives the sentence that says
 * what the run does not show.
 */
export function installProgram(program, name) {
  if (isThere(program)) return undefined;
  if (process.getuid?.() === 0 && succeeds("apt-get", "--version")) {
    const install = () => succeeds("apt-get", "install", "-y", "--no-install-recommends", program);
    if (!install() && succeeds("apt-get", "update")) install();
    if (isThere(program)) return undefined;
  }
  return `${name} is missing and could not be installed, so the tests that need it were skipped: as root, 'apt-get install ${program}' brings it.`;
}

function isThere(program) {
  return [program, `/usr/sbin/${program}`].some((path) => succeeds(path, "--version"));
}

function succeeds(command, ...args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
