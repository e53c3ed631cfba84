import { readFile, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { EmbeddedError } from "./embedded-error.ts";

/** Whom PostgreSQL runs as; `undefined` everywhere means "as we are". */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

// PostgreSQL refuses to run as root. A dedicated account keeps the files from other programs that run as `nobody`.
const preferredNames = ["postgres", "_postgres", "nobody"];

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** The account for a new cluster: an unprivileged one for root, our own for other users. */
export async function chooseAccount(): Promise<Account | undefined> {
  if (isRoot()) return findUnprivileged();
  requirePasswdEntry();
  return undefined;
}

/** The account for a cluster that exists: its owner for root, our own for other users. */
export async function accountOf(clusterDir: string): Promise<Account | undefined> {
  if (isRoot()) {
    const { uid, gid } = await stat(clusterDir);
    return { uid, gid };
  }
  requirePasswdEntry();
  return undefined;
}

async function findUnprivileged(): Promise<Account> {
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n").map((line) => line.split(":"));
  for (const name of preferredNames) {
    const [, , uid, gid] = lines.find((fields) => fields[0] === name) ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedError(
    "NO_ACCOUNT",
    `PostgreSQL does not run as root and /etc/passwd has none of the accounts ${preferredNames.join(", ")}: ` +
      "set DATABASE_URL to a server of your own.",
  );
}

function requirePasswdEntry(): void {
  try {
    userInfo();
  } catch (cause) {
    throw new EmbeddedError(
      "NO_ACCOUNT",
      `PostgreSQL cannot run under user id ${process.geteuid?.()}, which has no entry in /etc/passwd: ` +
        "add one, or set DATABASE_URL to a server of your own.",
      { cause },
    );
  }
}
