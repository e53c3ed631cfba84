import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { EmbeddedError, hasCode } from "./embedded-error.ts";
import { commandLineOf, isRunning } from "./process-mark.ts";

type Finding =
  | { readonly state: "ready"; readonly port: number }
  /** A server process is there but does not take connections: starting, recovering or shutting down. */
  | { readonly state: "busy" }
  | { readonly state: "absent" };

const patienceMs = 90_000;

/** Looks for a running server of this cluster and waits until it is either up or gone. */
export async function findSettledServer(
  clusterDir: string,
  password: string,
): Promise<Exclude<Finding, { state: "busy" }>> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const found = await findServer(clusterDir, password);
    if (found.state !== "busy") return found;
    if (Date.now() > deadline) {
      throw new EmbeddedError(
        "START_FAILED",
        `The server of '${clusterDir}' runs but took no connection for ${patienceMs / 1000} s: see server.log there.`,
      );
    }
    await sleep(50);
  }
}

/** Looks for a running server of this cluster. "ready" means that a connection with our password was made. */
async function findServer(clusterDir: string, password: string): Promise<Finding> {
  const [pidLine, startedDir, , portLine] = (await readPidFile(clusterDir)).split("\n");
  const pid = Number(pidLine);
  if (!(pid > 0) || startedDir === undefined) return { state: "absent" };
  if (!isPostmaster(pid, startedDir)) {
    await disownPidFile(clusterDir);
    return { state: "absent" };
  }
  const port = Number(portLine);
  if (!(port > 0)) return { state: "busy" };
  return (await canConnect(connectionStringOf(port, password), clusterDir))
    ? { state: "ready", port }
    : { state: "busy" };
}

export function connectionStringOf(port: number, password: string): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

function readPidFile(clusterDir: string): Promise<string> {
  return readFile(pidFileOf(clusterDir), "utf8").catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return "";
    throw error;
  });
}

function pidFileOf(clusterDir: string): string {
  return join(clusterDir, "postmaster.pid");
}

/** After a reboot or a container's restart the number often belongs to some other program. */
function isPostmaster(pid: number, startedDir: string): boolean {
  return isRunning(pid) && (commandLineOf(pid)?.includes(startedDir) ?? true);
}

/**
 * PostgreSQL refuses to start while the process id in its file exists, even as a zombie or as another program.
 * The file must stay, because it also leads to the shared memory that orphaned backends may still use:
 * so only the id is replaced, by one that no process can have.
 */
async function disownPidFile(clusterDir: string): Promise<void> {
  const [, ...rest] = (await readPidFile(clusterDir)).split("\n");
  // "r+" never makes the file anew; the new text is never shorter than the old one.
  await writeFile(pidFileOf(clusterDir), ["2147483647", ...rest].join("\n"), { flag: "r+" });
}

async function canConnect(connectionString: string, clusterDir: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return true;
  } catch (cause) {
    if (hasCode(cause, "28P01")) {
      throw new EmbeddedError(
        "WRONG_PASSWORD",
        `The server of '${clusterDir}' refuses the password in our file: set the role's password back to it with ALTER ROLE.`,
        { cause },
      );
    }
    // A server with no connection left to give is a running server.
    return hasCode(cause, "53300");
  } finally {
    await client.end().catch(() => undefined);
  }
}
