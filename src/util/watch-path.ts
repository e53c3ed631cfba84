import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "./sleep.ts";

export interface PathWatch {
  /** Resolves when no call of `onChange` is under way and none will follow. May be called twice. */
  stop(): Promise<void>;
}

/** An editor may empty a file before it fills it: only what stays the same for this long is reported. */
const settleMs = 60;
/** Notifications of the file system can be missing (network folders, containers) or late, so they are only hints. */
const pollMs = 1_000;

/**
 * Calls `onChange` after something at the path, a file or a whole folder, was changed, added or removed; also if nothing is
 * there yet. Calls never overlap. It knows changes by comparing what is there, so none is reported twice and none is lost.
 */
export function watchPath(path: string, onChange: () => Promise<void>): PathWatch {
  const stopping = new AbortController();
  const watching = watchUntilAborted(path, onChange, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await watching;
    },
  };
}

async function watchUntilAborted(path: string, onChange: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let known = await fingerprint(path);
  while (!signal.aborted) {
    await waitForHint(path, signal);
    let current = await fingerprint(path);
    if (current === known) continue;
    for (let before = ""; before !== current && !signal.aborted; ) {
      before = current;
      await sleep(settleMs, signal);
      current = await fingerprint(path);
    }
    if (signal.aborted) return;
    known = current;
    await onChange();
  }
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
