import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { whyInstall } from "../../scripts/install-program.mjs";

const script = readFileSync(new URL("../../scripts/install-program.mjs", import.meta.url), "utf8");

/** Asks as somebody who may not install anything, and who may not even be able to read the script where it is. */
function askFor(program: string): string {
  const code = `${script}\nconsole.log(installProgram(${JSON.stringify(program)}, "The program"));`;
  const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const options = { cwd: "/", encoding: "utf8", ...account } as const;
  return spawnSync(process.execPath, ["--input-type=module", "--eval", code], options).stdout.trim();
}

test("a program that the tests need and that cannot be had is named in one sentence, with the way to get it", () => {
  expect(askFor("no-such-program")).toBe(
    "The program is missing and was not installed, so the tests that need it were skipped: as root, 'apt-get install no-such-program' installs it.",
  );
  expect(askFor("node")).toBe("undefined");
});

test("programs are installed only as root, on a build machine or in a container", () => {
  const nowhere = (): boolean => false;
  const inDocker = (path: string): boolean => path === "/.dockerenv";
  expect(whyInstall({}, 0, nowhere)).toBeUndefined();
  expect(whyInstall({ CI: "true" }, 1000, inDocker)).toBeUndefined();
  expect(whyInstall({ CI: "false" }, 0, nowhere)).toBeUndefined();
  expect(whyInstall({ CI: "true" }, 0, nowhere)).toBe("as root, and CI is set");
  expect(whyInstall({}, 0, inDocker)).toBe("as root, in a container");
});
