import { execFile } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type EmbeddedServer, startEmbedded } from "@hathi/embedded";
import pg from "pg";
import { accountOf } from "../../packages/embedded/src/account.ts";
import { findBinaries } from "../../packages/embedded/src/find-binaries.ts";
import { findFreePort } from "../../packages/embedded/src/free-port.ts";
import { prepareBinaries } from "../../packages/embedded/src/prepare-binaries.ts";
import { runBinary } from "../../packages/embedded/src/run-binary.ts";
import { serverFolder } from "./server-folder.ts";
import { until } from "./wait.ts";

/** A PostgreSQL server that a test file has for itself, so that it may be stopped and killed. */
export interface PrivateServer {
  readonly url: string;
  readonly clusterDir: string;
  /** `fast` ends connections in an orderly way; `immediate` is a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  /** `env` is given to the server as well. */
  start(env?: Readonly<Record<string, string>>): Promise<void>;
  restart(mode: "fast" | "immediate"): Promise<void>;
  /** A hot standby of it, for which commits wait. Restarts the server. */
  makeStandby(): Promise<Standby>;
  /** Ends it and removes its files. */
  remove(): Promise<void>;
}

interface Standby {
  readonly url: string;
  promote(): Promise<void>;
}

/** Starts one. Commits are durable against a crash of the server (not of the machine). */
export async function startPrivateServer(settings: Readonly<Record<string, number>> = {}): Promise<PrivateServer> {
  const version = process.env.POSTGRES_VERSION || undefined;
  const nativeDir = version ? fileURLToPath(new URL("../postgres", import.meta.url)) : undefined;
  const dataDir = mkdtempSync(join(serverFolder(), "hathi-chaos-"));
  const server = await startEmbedded({
    dataDir,
    profile: "test",
    version,
    nativeDir,
    settings: { synchronous_commit: true, max_connections: 100, ...settings },
  });
  const { clusterDir } = server;
  const standbyDir = `${clusterDir}-standby`;
  const [control, controlStandby] = [clusterDir, standbyDir].map((folder) => makeControl(server, folder, nativeDir));
  return {
    url: server.connectionString,
    clusterDir,
    stop: (mode) => control!("stop", "--mode", mode),
    start: (env) => (env ? startWith(server, nativeDir, env) : control!("start")),
    restart: (mode) => control!("restart", "--mode", mode),
    makeStandby: async () => {
      await control!("stop", "--mode", "fast");
      const standby = await copyCluster(server, standbyDir);
      await control!("start");
      await controlStandby!("start");
      await waitForStandby(server.connectionString);
      return { url: standby, promote: () => controlStandby!("promote") };
    },
    remove: async () => {
      if (existsSync(join(standbyDir, "postmaster.pid"))) await controlStandby!("stop", "--mode", "immediate");
      rmSync(standbyDir, { recursive: true, force: true });
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(server.clusterDir, { recursive: true, force: true });
    },
  };
}

type Control = (command: string, ...args: string[]) => Promise<void>;

function makeControl({ clusterDir, version }: EmbeddedServer, folder: string, nativeDir: string | undefined): Control {
  return async (command, ...args) => {
    const account = await accountOf(clusterDir);
    const { binDir } = await prepareBinaries(findBinaries(version, nativeDir), account);
    const log = /start/.test(command) ? ["--log", join(folder, "server.log")] : [];
    const all = [command, "--pgdata", folder, ...log, "--wait", "--timeout", "60", "--silent", ...args];
    const { exitCode, output } = await runBinary(join(binDir, "pg_ctl"), all, account);
    if (exitCode !== 0) throw new Error(`pg_ctl ${command} failed: ${output}`);
  };
}

/** The programs of an embedded server get no variables of ours, so this one is started by hand. */
async function startWith(
  { clusterDir, version }: EmbeddedServer,
  nativeDir: string | undefined,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const account = await accountOf(clusterDir);
  const { binDir } = await prepareBinaries(findBinaries(version, nativeDir), account);
  const args = ["start", "--pgdata", clusterDir, "--log", join(clusterDir, "server.log"), "--wait", "--silent"];
  const options = { cwd: binDir, env: { PATH: process.env.PATH, LC_ALL: "C", ...env }, ...account };
  await promisify(execFile)(join(binDir, "pg_ctl"), args, options);
}

/** Copies a cluster that is stopped, and tells the copy to follow it; gives the copy's URL. */
async function copyCluster({ clusterDir, connectionString }: EmbeddedServer, folder: string): Promise<string> {
  await promisify(execFile)("cp", ["--archive", clusterDir, folder]);
  const url = new URL(connectionString);
  url.port = String(await findFreePort());
  appendFileSync(
    join(folder, "embedded.conf"),
    `port = '${url.port}'\nprimary_conninfo = '${connectionString}'\nhot_standby = on\n`,
  );
  writeFileSync(join(folder, "standby.signal"), "");
  return url.href;
}

/** From then on commits wait until the standby has them. */
async function waitForStandby(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await until(
    async () => (await client.query("select from pg_stat_replication where state = 'streaming'")).rowCount === 1,
    { what: "the standby follows", withinMs: 60_000 },
  );
  await client.query("alter system set synchronous_standby_names = '*'");
  await client.query("select pg_reload_conf()");
  await until(
    async () => (await client.query("show synchronous_standby_names")).rows[0].synchronous_standby_names === "*",
  );
  await client.end();
}
