import { spawn } from "node:child_process";
import { dirname } from "node:path";
import type { Account } from "./account.ts";

export interface BinaryResult {
  readonly exitCode: number | null;
  readonly output: string;
}

/** Runs one PostgreSQL program to its end, beyond the reach of the terminal's Ctrl-C. Rejects if it cannot be executed. */
export function runBinary(file: string, args: readonly string[], account: Account | undefined): Promise<BinaryResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      // Our own working folder may be closed to the account.
      cwd: dirname(file),
      detached: true,
      windowsHide: true,
      env: plainEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
      ...account,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.on("error", reject);
    // On Windows the server inherits pg_ctl's pipes and would keep them open.
    child.on("exit", () => {
      setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, 500).unref();
    });
    child.on("close", (exitCode, signal) => {
      // Ctrl-C came after the fork and before the program had left our reach: it has not begun.
      if (signal === "SIGINT" && output === "") resolve(runBinary(file, args, account));
      else resolve({ exitCode, output: output.trim() });
    });
  });
}

/** PG* and LD_* of the caller would change what the programs do; messages stay in English. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = ["PATH", "TZ", "TMPDIR", "TEMP", "TMP", "SystemRoot"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}
