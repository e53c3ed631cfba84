import { readdir, realpath, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { startEmbedded } from "@hathi/embedded";

/**
 * Removes the embedded databases that were made below a folder, and ends their servers. Where the folder is closed to the
 * account that runs root's servers, they are not in the folder itself.
 */
export async function removeClusters(folder: string): Promise<void> {
  const files = await readdir(folder, { recursive: true });
  for (const file of files.filter((name) => basename(name) === "pgdata")) {
    const clusterDir = await realpath(join(folder, file)).catch(() => undefined);
    if (clusterDir === undefined) continue; // a link whose folder is gone
    const dataDir = join(folder, dirname(file));
    if ((await readdir(clusterDir)).includes("postmaster.pid")) await (await startEmbedded({ dataDir })).stop();
    await rm(clusterDir, { recursive: true, force: true });
  }
}
