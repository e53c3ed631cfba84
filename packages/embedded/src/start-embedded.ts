import { accountOf } from "./account.ts";
import { ensureServer, type RunningServer } from "./ensure-server.ts";
import { findBinaries } from "./find-binaries.ts";
import { connectionStringOf, findSettledServer } from "./find-server.ts";
import { hold } from "./holders.ts";
import { openHome } from "./home.ts";
import { stopServer } from "./launch-server.ts";
import { withLock } from "./lock.ts";
import { checkOptions, type EmbeddedOptions } from "./options.ts";
import { prepareBinaries } from "./prepare-binaries.ts";

export interface EmbeddedServer extends AsyncDisposable {
  /** URL of the superuser in the database `postgres`, ready for psql or DATABASE_URL. */
  readonly connectionString: string;
  readonly port: number;
  /** The data folder, as an absolute path. */
  readonly dataDir: string;
  /** Where PostgreSQL's own files are; outside `dataDir` when root started it in a folder closed to others. */
  readonly clusterDir: string;
  /** Major version of the server. */
  readonly version: number;
  /** Whether this call started the server or found it running. */
  readonly origin: "started" | "attached";
  /** Lets go of the server; the last process to do so shuts it down. True if it was shut down. May be called twice. */
  stop(): Promise<boolean>;
}

/** Starts the PostgreSQL server of a data folder, or attaches to the one that is already running. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const request = checkOptions(options);
  const home = await openHome(request.dataDir);
  return withLock(home.lockFile, async () => {
    const server = await ensureServer(home, request);
    const { password, ...facts } = server;
    const holder = await hold(home.holdersDir);
    let stopping: Promise<boolean> | undefined;
    const stop = (): Promise<boolean> => {
      stopping ??= withLock(home.lockFile, async () => {
        const { isLast } = await holder.release();
        if (isLast) await shutDown(server, request.nativeDir);
        return isLast;
      });
      return stopping;
    };
    return Object.freeze({
      ...facts,
      connectionString: connectionStringOf(facts.port, password),
      dataDir: home.dataDir,
      stop,
      [Symbol.asyncDispose]: async () => void (await stop()),
    });
  });
}

async function shutDown(server: RunningServer, nativeDir: string | undefined): Promise<void> {
  const found = await findSettledServer(server.clusterDir, server.password);
  if (found.state === "absent") return;
  const account = await accountOf(server.clusterDir);
  const { binDir } = await prepareBinaries(findBinaries(server.version, nativeDir), account);
  await stopServer(binDir, server.clusterDir, account);
}
