import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { isRunning } from "../../src/process-mark.ts";
import type { Account } from "./accounts.ts";

/** A temporary folder; when the test ends, servers in it are shut down and everything is removed. */
export function makeFolder({ mode = 0o755, owner }: { mode?: number; owner?: Account | undefined } = {}): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "hathi-embedded-"));
  chmodSync(folder, mode);
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  onTestFinished(async () => {
    chmodSync(folder, 0o755);
    for (const clusterDir of findClusters(folder)) {
      await shutDown(clusterDir);
      rmSync(clusterDir, { recursive: true, force: true });
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return folder;
}

/** The process id in a cluster's postmaster.pid, or `undefined` when it has none. */
export function readServerPid(clusterDir: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(join(clusterDir, "postmaster.pid"), "utf8"), 10);
  } catch {
    return undefined;
  }
}

/** Resolves when the fact has come true; the test's own time limit is the only other way out. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(5);
}

async function shutDown(clusterDir: string): Promise<void> {
  const pid = readServerPid(clusterDir);
  if (pid === undefined || !isRunning(pid)) return;
  process.kill(pid, "SIGQUIT");
  await until(() => !isRunning(pid));
}

function findClusters(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => basename(name) === "pgdata",
  );
  return names.map((name) => realpathSync(join(folder, name)));
}
