import { randomUUID } from "node:crypto";
import { appendFile, chown, mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Account } from "./account.ts";
import { configFileName } from "./cluster-config.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { Home } from "./home.ts";
import { isReachable, openSharedFolder, shortHash } from "./reachable-folder.ts";
import { runBinary } from "./run-binary.ts";

interface InitRequest {
  readonly home: Home;
  readonly binDir: string;
  readonly account: Account | undefined;
  readonly password: string;
  readonly isDurable: boolean;
}

/** Makes a new cluster and returns its real path; it appears under `home.pgdata` only when it is complete. */
export async function initCluster(request: InitRequest): Promise<string> {
  const { home, account } = request;
  const isInPlace = await isReachable(home.dataDir, account);
  const folder = isInPlace ? home.dataDir : await openSharedFolder(account);
  const name = isInPlace ? basename(home.pgdata) : `data-${shortHash(home.dataDir)}`;
  await removeDrafts(folder, `${name}.new-`);
  const draft = join(folder, `${name}.new-${randomUUID()}`);

  await mkdir(draft, { mode: 0o700 });
  if (account !== undefined) await chown(draft, account.uid, account.gid);
  await runInitdb(request, draft);
  await appendFile(join(draft, "postgresql.conf"), `\ninclude_if_exists = '${configFileName}'\n`);

  // At most a link to a folder that is gone.
  await rm(home.pgdata, { force: true });
  if (isInPlace) {
    await rename(draft, home.pgdata);
    return home.pgdata;
  }
  const clusterDir = join(folder, `${name}.${randomUUID()}`);
  await rename(draft, clusterDir);
  await symlink(clusterDir, home.pgdata);
  return clusterDir;
}

async function runInitdb(request: InitRequest, clusterDir: string): Promise<void> {
  const { account, binDir } = request;
  // Next to the cluster, because initdb wants an empty folder and must be able to read the file as the account.
  const passwordFile = `${clusterDir}.password`;
  try {
    await writeFile(passwordFile, request.password, { mode: 0o600, flag: "wx" });
    if (account !== undefined) await chown(passwordFile, account.uid, account.gid);
    const args = ["--pgdata", clusterDir, "--username", "postgres", "--pwfile", passwordFile];
    args.push("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C");
    if (!request.isDurable) args.push("--no-sync");
    const { exitCode, output } = await runBinary(join(binDir, "initdb"), args, account);
    if (exitCode !== 0) {
      throw new EmbeddedError("INIT_FAILED", `PostgreSQL could not create a cluster in '${clusterDir}': ${output}`);
    }
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** What starts that failed or were killed half-way have left. */
async function removeDrafts(folder: string, prefix: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix)) continue;
    // An initdb that outlived its parent may still be writing there; it does no harm.
    await rm(join(folder, name), { recursive: true, force: true }).catch(() => undefined);
  }
}
