import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

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
    "The program is missing and could not be installed, so the tests that need it were skipped: as root, 'apt-get install no-such-program' brings it.",
  );
  expect(askFor("node")).toBe("undefined");
});
