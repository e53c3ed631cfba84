import { type Account, accountOf, chooseAccount } from "./account.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { findBinaries } from "./find-binaries.ts";
import { findSettledServer } from "./find-server.ts";
import { createPassword, type Home, locateCluster, majorOf, readPassword } from "./home.ts";
import { initCluster } from "./init-cluster.ts";
import { launchServer } from "./launch-server.ts";
import type { StartRequest } from "./options.ts";
import { type Programs, prepareBinaries } from "./prepare-binaries.ts";

export interface RunningServer {
  readonly port: number;
  readonly clusterDir: string;
  readonly version: number;
  readonly origin: "started" | "attached";
  readonly password: string;
}

/** Returns the running server of this home, started or even created if need be. Call it under the home's lock. */
export async function ensureServer(home: Home, request: StartRequest): Promise<RunningServer> {
  const existing = await locateCluster(home);
  if (existing === undefined) return createAndLaunch(home, request);

  const version = await majorOf(existing);
  if (request.major !== undefined && request.major !== version) throw otherVersion(home, version, request.major);
  const password = await readPassword(home);
  const found = await findSettledServer(existing, password);
  if (found.state === "ready") return { port: found.port, clusterDir: existing, version, origin: "attached", password };

  const account = await accountOf(existing);
  const programs = await prepareBinaries(findBinaries(version, request.nativeDir), account);
  if (programs.major !== version) throw otherVersion(home, version, programs.major);
  return launch(existing, password, programs, account, request);
}

async function createAndLaunch(home: Home, request: StartRequest): Promise<RunningServer> {
  const account = await chooseAccount();
  const programs = await prepareBinaries(findBinaries(request.major, request.nativeDir), account);
  if (request.major !== undefined && request.major !== programs.major) {
    throw new EmbeddedError(
      "VERSION_MISMATCH",
      `The binaries in '${programs.binDir}' are PostgreSQL ${programs.major}, not ${request.major}: leave 'nativeDir' or 'version' out.`,
    );
  }
  const password = await createPassword(home);
  const isDurable = request.profile === "durable";
  const clusterDir = await initCluster({ home, binDir: programs.binDir, account, password, isDurable });
  return launch(clusterDir, password, programs, account, request);
}

async function launch(
  clusterDir: string,
  password: string,
  { binDir, major }: Programs,
  account: Account | undefined,
  { port, profile, settings }: StartRequest,
): Promise<RunningServer> {
  const actualPort = await launchServer({ clusterDir, binDir, account, password, port, profile, settings });
  return { port: actualPort, clusterDir, version: major, origin: "started", password };
}

function otherVersion(home: Home, made: number, wanted: number): EmbeddedError {
  return new EmbeddedError(
    "VERSION_MISMATCH",
    `'${home.dataDir}' was made by PostgreSQL ${made}, not ${wanted}: ask for version ${made}, or choose another folder.`,
  );
}
