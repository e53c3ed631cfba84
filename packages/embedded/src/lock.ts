import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { EmbeddedError, hasCode } from "./embedded-error.ts";
import { isAlive, markOf, type ProcessMark } from "./process-mark.ts";

const waitMs = 120_000;
const pollMs = 25;
const unfinishedMs = 5_000;

/** Runs `work` while no other process does so under the same file. A dead holder's lock is taken over. */
export async function withLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  await acquire(file);
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

async function acquire(file: string): Promise<void> {
  const deadline = Date.now() + waitMs;
  while (!tryAcquire(file)) {
    if (isAbandoned(file)) breakLock(file);
    else if (Date.now() > deadline) throw busy(file);
    else await sleep(pollMs);
  }
}

function tryAcquire(file: string): boolean {
  try {
    writeFileSync(file, JSON.stringify(markOf(process.pid)), { flag: "wx" });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

function isAbandoned(file: string): boolean {
  const holder = readHolder(file);
  return holder === undefined ? isOlderThan(file, unfinishedMs) : !isAlive(holder);
}

function readHolder(file: string): ProcessMark | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as ProcessMark;
  } catch {
    return undefined;
  }
}

/** Two waiters must not both remove the lock: the slower one would remove the faster one's new lock. */
function breakLock(file: string): void {
  const gate = `${file}.break`;
  try {
    mkdirSync(gate);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    if (isOlderThan(gate, unfinishedMs)) rmSync(gate, { recursive: true, force: true });
    return;
  }
  try {
    if (isAbandoned(file)) rmSync(file, { force: true });
  } finally {
    rmdirSync(gate);
  }
}

function isOlderThan(path: string, ageMs: number): boolean {
  const info = statSync(path, { throwIfNoEntry: false });
  return info !== undefined && Date.now() - info.mtimeMs > ageMs;
}

function busy(file: string): EmbeddedError {
  return new EmbeddedError(
    "BUSY",
    `Process ${readHolder(file)?.pid ?? "unknown"} has held '${file}' for ${waitMs / 1000} s: end it and try again.`,
  );
}
