import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "./sleep.ts";

export interface PathWatch {
  /**
   * From now on, calls `onChange` after something at the path was changed, added or removed since the watch was made. Calls
   * never overlap.
   */
  follow(onChange: () => Promise<void>): void;
  /** Resolves when no call of `onChange` is under way and none will follow. May be called twice. */
  stop(): Promise<void>;
}

/** An editor may empty a file before it fills it: only what stays the same for this long is reported. */
const settleMs = 60;
/** Notifications of the file system can be missing (network folders, containers) or late, so they are only hints. */
const pollMs = 1_000;

/**
 * Remembers what is at a path, a file or a whole folder; nothing may be there yet. It knows changes by comparing what is
 * there, so that none is reported twice and none is lost, not even one that comes before `follow`. `findOthers` names further
 * files that count; it is asked at every comparison.
 */
export async function watchPath(
  path: string,
  findOthers: () => Promise<readonly string[]> = async () => [],
): Promise<PathWatch> {
  const read = async (): Promise<string> =>
    (await Promise.all([path, ...(await findOthers())].map(fingerprint))).join();
  const known = await read();
  const stopping = new AbortController();
  let following: Promise<void> = Promise.resolve();
  return {
    follow(onChange) {
      following = followUntilAborted({ path, read }, known, onChange, stopping.signal);
    },
    async stop() {
      stopping.abort();
      await following;
    },
  };
}

interface Watched {
  readonly path: string;
  readonly read: () => Promise<string>;
}

async function followUntilAborted(
  { path, read }: Watched,
  before: string,
  onChange: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let known = before;
  for (; !signal.aborted; await waitForHint(path, signal)) {
    if ((await read()) === known) continue;
    const settled = await settledFingerprint(read, signal);
    if (signal.aborted || settled === known) continue;
    known = settled;
    await onChange();
  }
}

async function settledFingerprint(read: () => Promise<string>, signal: AbortSignal): Promise<string> {
  let current = await read();
  for (let before = ""; before !== current && !signal.aborted; ) {
    before = current;
    await sleep(settleMs, signal);
    current = await read();
  }
  return current;
}

/** Resolves when the file system reports something, when it is time to look anyway, or when aborted. */
async function waitForHint(path: string, signal: AbortSignal): Promise<void> {
  const hint = new AbortController();
  const wake = (): void => hint.abort();
  signal.addEventListener("abort", wake, { once: true });
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(path, { recursive: true, persistent: false }, wake);
    watcher.on("error", () => undefined);
  } catch {
    // Nothing is there to watch yet, or the system has run out of watches.
  }
  if (!signal.aborted) await sleep(pollMs, hint.signal);
  watcher?.close();
  signal.removeEventListener("abort", wake);
}

/** Everything about the files at a path that changes when they do. */
async function fingerprint(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats) return "";
  if (!stats.isDirectory()) return `${path}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.mode}\n`;
  const names = await readdir(path).catch(() => []);
  const parts = await Promise.all(names.sort().map((name) => fingerprint(join(path, name))));
  return `${path}/\n${parts.join("")}`;
}
