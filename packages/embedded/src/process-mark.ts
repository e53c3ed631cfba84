import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Names one process, not just a number that the system may hand out again. */
export interface ProcessMark {
  readonly pid: number;
  /** Start time in the kernel's own units; `null` where the system does not tell. */
  readonly born: string | null;
}

export function markOf(pid: number): ProcessMark {
  return { pid, born: readProcStat(pid)?.born ?? null };
}

export function isAlive(mark: ProcessMark): boolean {
  if (!isRunning(mark.pid)) return false;
  return mark.born === null || markOf(mark.pid).born === mark.born;
}

/** A killed process whose parent has not collected it yet still answers signals, but does not run. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  const state = readProcStat(pid)?.state;
  return state !== "Z" && state !== "X";
}

/** The command line of a process, or `undefined` where it cannot be read. */
export function commandLineOf(pid: number): string | undefined {
  try {
    if (process.platform === "linux") return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    if (process.platform === "win32") return undefined;
    return execFileSync("ps", ["-p", String(pid), "-o", "command="], { encoding: "utf8" });
  } catch {
    return undefined;
  }
}

function readProcStat(pid: number): { state: string; born: string } | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", born: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}
