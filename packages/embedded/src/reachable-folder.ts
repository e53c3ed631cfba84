import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, realpath, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Account, isRoot } from "./account.ts";
import { EmbeddedError } from "./embedded-error.ts";

/** True if the account may pass through every folder down to `path`. */
export async function isReachable(path: string, account: Account | undefined): Promise<boolean> {
  if (account === undefined) return true;
  for (let folder = await realpath(path); ; folder = dirname(folder)) {
    const { mode, uid, gid } = await stat(folder);
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** A folder of our own, outside the project, that the account can pass through. */
export async function openSharedFolder(account: Account | undefined): Promise<string> {
  const candidates = sharedFolders();
  for (const folder of candidates) {
    if ((await isOurs(folder)) && (await isReachable(folder, account))) return folder;
  }
  throw new EmbeddedError(
    "DATA_DIR_DENIED",
    `None of the folders ${candidates.join(", ")} can be used: make one writable, or set DATABASE_URL to a server of your own.`,
  );
}

function sharedFolders(): readonly string[] {
  const temporary = join(tmpdir(), `hathi-${process.geteuid?.() ?? "embedded"}`);
  if (isRoot()) return ["/var/lib/hathi", temporary, "/tmp/hathi-0"];
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  return [join(cache, "hathi"), temporary];
}

/** Anybody may prepare a folder in /tmp: one that others can write to must not be trusted with programs to run. */
async function isOurs(folder: string): Promise<boolean> {
  try {
    await mkdir(dirname(folder), { recursive: true });
    // The mode of mkdir is subject to the umask.
    await mkdir(folder).then(
      () => chmod(folder, 0o755),
      () => undefined,
    );
    const info = await lstat(folder);
    if (process.geteuid === undefined) return info.isDirectory();
    return info.isDirectory() && info.uid === process.geteuid() && (info.mode & 0o022) === 0;
  } catch {
    return false;
  }
}

/** A short name for a path that is no name by itself. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
