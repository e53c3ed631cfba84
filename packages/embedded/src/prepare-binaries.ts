import { chmod, cp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Account } from "./account.ts";
import { EmbeddedError, hasCode } from "./embedded-error.ts";
import type { Binaries } from "./find-binaries.ts";
import { withLock } from "./lock.ts";
import { openSharedFolder } from "./reachable-folder.ts";
import { repairSymlinks } from "./repair-symlinks.ts";
import { runBinary } from "./run-binary.ts";

/** Programs that are known to run under the account. */
export interface Programs {
  readonly binDir: string;
  readonly major: number;
}

type Trial = { readonly major: number } | { readonly problem: string };

/** Makes the binaries run where they are, or else from a copy that the account can reach. */
export async function prepareBinaries(found: Binaries, account: Account | undefined): Promise<Programs> {
  const isComplete = await repairSymlinks(found.nativeDir);
  const inPlace = await tryOut(found.nativeDir, account);
  if ("major" in inPlace) return { binDir: join(found.nativeDir, "bin"), major: inPlace.major };
  if (isComplete && !isDenied(inPlace.problem)) throw doesNotRun(found, inPlace.problem);

  const copy = join(await openSharedFolder(account), found.label);
  const trial = await withLock(`${copy}.lock`, async () => {
    const earlier = await tryOut(copy, account);
    if ("major" in earlier) return earlier;
    await makeCopy(found.nativeDir, copy);
    const later = await tryOut(copy, account);
    if ("problem" in later) await removeTree(copy);
    return later;
  });
  if ("problem" in trial) throw doesNotRun(found, trial.problem);
  return { binDir: join(copy, "bin"), major: trial.major };
}

async function tryOut(nativeDir: string, account: Account | undefined): Promise<Trial> {
  try {
    const { exitCode, output } = await runBinary(join(nativeDir, "bin", "postgres"), ["--version"], account);
    const major = Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1]);
    return exitCode === 0 && major > 0 ? { major } : { problem: output || `exit code ${exitCode}` };
  } catch (error) {
    return { problem: hasCode(error, "EACCES", "EPERM") ? denied : String(error) };
  }
}

const denied = "permission denied";

function isDenied(problem: string): boolean {
  return problem.toLowerCase().includes(denied);
}

/** Copies aside and renames: a copy cut short by a crash is never taken for a whole one. */
async function makeCopy(nativeDir: string, copy: string): Promise<void> {
  const aside = `${copy}.new`;
  await removeTree(aside);
  // The links inside are relative; resolving them would point the copy back at the original.
  await cp(nativeDir, aside, { recursive: true, verbatimSymlinks: true });
  await openToAll(aside);
  await repairSymlinks(aside);
  await removeTree(copy);
  await rename(aside, copy);
}

async function removeTree(folder: string): Promise<void> {
  // A copy of read-only folders that was cut short cannot be removed as it is.
  await openToAll(folder).catch(() => undefined);
  await rm(folder, { recursive: true, force: true });
}

/** The install may be read-only, or made under a private umask. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, folder.endsWith("bin") ? 0o755 : 0o644);
  }
}

function doesNotRun(found: Binaries, problem: string): EmbeddedError {
  return new EmbeddedError(
    "NO_BINARY",
    `The PostgreSQL in '${found.nativeDir}' does not run on this machine (${problem}): ` +
      "set DATABASE_URL to a server of your own.",
  );
}
