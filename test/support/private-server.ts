import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type EmbeddedServer, startEmbedded } from "@hathi/embedded";
import { accountOf } from "../../packages/embedded/src/account.ts";
import { findBinaries } from "../../packages/embedded/src/find-binaries.ts";
import { prepareBinaries } from "../../packages/embedded/src/prepare-binaries.ts";
import { runBinary } from "../../packages/embedded/src/run-binary.ts";

/** A PostgreSQL server that a test file has for itself, so that it may be stopped and killed. */
export interface PrivateServer {
  readonly url: string;
  /** `fast` ends connections in an orderly way; `immediate` is a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  restart(mode: "fast" | "immediate"): Promise<void>;
  /** Ends it and removes its files. */
  remove(): Promise<void>;
}

/** Starts one. Commits are durable against a crash of the server (not of the machine). */
export async function startPrivateServer(): Promise<PrivateServer> {
  const version = process.env.POSTGRES_VERSION || undefined;
  const nativeDir = version ? fileURLToPath(new URL("../postgres", import.meta.url)) : undefined;
  const dataDir = mkdtempSync(join(tmpdir(), "hathi-chaos-"));
  const server = await startEmbedded({
    dataDir,
    profile: "test",
    version,
    nativeDir,
    settings: { synchronous_commit: true, max_connections: 100 },
  });
  const control = await makeControl(server, nativeDir);
  return {
    url: server.connectionString,
    stop: (mode) => control("stop", "--mode", mode),
    start: () => control("start"),
    restart: (mode) => control("restart", "--mode", mode),
    remove: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
      rmSync(server.clusterDir, { recursive: true, force: true });
    },
  };
}

type Control = (command: string, ...args: string[]) => Promise<void>;

async function makeControl({ clusterDir, version }: EmbeddedServer, nativeDir: string | undefined): Promise<Control> {
  const account = await accountOf(clusterDir);
  const { binDir } = await prepareBinaries(findBinaries(version, nativeDir), account);
  return async (command, ...args) => {
    const log = join(clusterDir, "server.log");
    const all = [command, "--pgdata", clusterDir, "--log", log, "--wait", "--timeout", "60", "--silent", ...args];
    const { exitCode, output } = await runBinary(
      join(binDir, "pg_ctl"),
      command === "stop" ? all.filter((arg) => arg !== "--log" && arg !== log) : all,
      account,
    );
    if (exitCode !== 0) throw new Error(`pg_ctl ${command} failed: ${output}`);
  };
}
