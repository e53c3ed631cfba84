import { readFileSync } from "node:fs";

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export const isRoot: boolean = process.geteuid?.() === 0;

/** Nobody, when the suite runs as root; `undefined`, which is the suite's own account, otherwise. */
export const plainAccount: Account | undefined = isRoot ? readNobody() : undefined;

/** An id that has no entry in /etc/passwd. */
export const unlistedAccount: Account = { uid: 54_321, gid: 54_321 };

function readNobody(): Account {
  const fields = /^nobody:.*$/m.exec(readFileSync("/etc/passwd", "utf8"))?.[0].split(":") ?? [];
  return { uid: Number(fields[2]), gid: Number(fields[3]) };
}
