import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a test imports if it starts a process, a browser or a server of its own. */
const slowPackages = /^(node:child_process|@hathi\/embedded|playwright.*)$/;

/** How a test says that it may take longer than most. */
const longTimeout = /testTimeout: |timeout: \d{2,3}_000|^\}, \d{2,3}_000\)/m;

/**
 * The tests that `npm run test:fast` runs: those that reach none of the slow packages through their imports below test/,
 * need no packages of their own, and ask for no more time than the default. So there is no list to keep.
 */
export function listFastTests(): string[] {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  return files
    .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules"))
    .map((file) => join(root, "test", file))
    .filter((file) => !existsSync(join(dirname(file), "package.json")))
    .filter((file) => !longTimeout.test(readFileSync(file, "utf8")) && !isSlow(file, new Set()));
}

function isSlow(file: string, seen: Set<string>): boolean {
  if (seen.has(file) || !existsSync(file)) return false;
  seen.add(file);
  const imports = [...readFileSync(file, "utf8").matchAll(/(?:from|import\() ?"([^"]+)"/g)].map(
    ([, target]) => target!,
  );
  return imports.some((target) =>
    target.startsWith(".") ? isTestFile(resolve(dirname(file), target), seen) : slowPackages.test(target),
  );
}

/** The library's own processes (the heartbeat thread, executables) are quick. */
function isTestFile(file: string, seen: Set<string>): boolean {
  return file.startsWith(join(root, "test")) && isSlow(file, seen);
}
