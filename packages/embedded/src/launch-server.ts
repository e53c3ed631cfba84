import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Account } from "./account.ts";
import { type Profile, readPort, type Settings, writeConfig } from "./cluster-config.ts";
import { EmbeddedError } from "./embedded-error.ts";
import { findSettledServer } from "./find-server.ts";
import { findFreePort, isPortFree } from "./free-port.ts";
import { runBinary } from "./run-binary.ts";

const patienceMs = 90_000;

export interface LaunchRequest {
  readonly clusterDir: string;
  readonly binDir: string;
  readonly account: Account | undefined;
  readonly password: string;
  /** `undefined` takes the last port again if it is free, and otherwise any. */
  readonly port: number | undefined;
  readonly profile: Profile;
  readonly settings: Settings;
}

/** Starts the server, through crash recovery if need be, and returns its port once it takes connections. */
export async function launchServer(request: LaunchRequest): Promise<number> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const port = await choosePort(request);
    await writeConfig(request.clusterDir, { ...request, port }, request.account);
    const problem = await runPgCtlStart(request);
    if (problem === undefined) break;
    const isPassing = (await isPassingProblem(request.clusterDir)) || !(await isPortFree(port));
    if (!isPassing || Date.now() > deadline) throw startFailed(request.clusterDir, problem);
    await sleep(100);
  }
  const found = await findSettledServer(request.clusterDir, request.password);
  if (found.state === "absent") throw startFailed(request.clusterDir, await readLog(request.clusterDir));
  return found.port;
}

/** Shuts the server down without waiting for its clients. */
export async function stopServer(binDir: string, clusterDir: string, account: Account | undefined): Promise<void> {
  const args = ["stop", "--pgdata", clusterDir, "--mode", "fast", "--wait", "--timeout", "90"];
  const { exitCode, output } = await runBinary(join(binDir, "pg_ctl"), args, account);
  if (exitCode !== 0) {
    throw new EmbeddedError("STOP_FAILED", `The server of '${clusterDir}' did not shut down: ${output}`);
  }
}

async function choosePort({ clusterDir, port }: LaunchRequest): Promise<number> {
  const wanted = port ?? (await readPort(clusterDir));
  if (wanted !== undefined && (await isPortFree(wanted))) return wanted;
  if (port === undefined) return findFreePort();
  throw new EmbeddedError("PORT_IN_USE", `Port ${port} is taken by another program: free it, or leave 'port' out.`);
}

async function runPgCtlStart({ clusterDir, binDir, account }: LaunchRequest): Promise<string | undefined> {
  const log = logOf(clusterDir);
  await rm(log, { force: true });
  // pg_ctl puts the server into a session of its own, so that no Ctrl-C reaches it.
  const args = ["start", "--pgdata", clusterDir, "--log", log, "--wait", "--timeout", "90", "--silent"];
  const { exitCode, output } = await runBinary(join(binDir, "pg_ctl"), args, account);
  return exitCode === 0 ? undefined : (await readLog(clusterDir)) || output;
}

/** Backends that survived a killed server notice it soon; until then PostgreSQL rightly refuses to start. */
async function isPassingProblem(clusterDir: string): Promise<boolean> {
  return /pre-existing shared memory block|lock file ".*" already exists/.test(await readLog(clusterDir));
}

function logOf(clusterDir: string): string {
  return join(clusterDir, "server.log");
}

function readLog(clusterDir: string): Promise<string> {
  return readFile(logOf(clusterDir), "utf8").then(
    (text) => text.trim().split("\n").slice(-10).join("\n"),
    () => "",
  );
}

function startFailed(clusterDir: string, problem: string): EmbeddedError {
  return new EmbeddedError("START_FAILED", `The server of '${clusterDir}' did not start: ${problem}`);
}
