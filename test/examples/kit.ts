import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "@hathi/embedded";
import { afterAll, beforeAll } from "vitest";
import { type ProgramEnd, type RunningProgram, startCommand } from "../support/program.ts";

/** Where the examples of a test file run: a folder whose embedded server is up already, so that none has to wait for one. */
export interface Stage {
  folder(): string;
  connectionString(): string;
  /** Starts a script of examples/ as its README says, without a database in the environment. */
  start(script: string, env?: Record<string, string>, args?: readonly string[]): RunningProgram;
  /** Runs it to its end. */
  play(script: string, env?: Record<string, string>): Promise<ProgramEnd>;
}

export const examplePath = (name: string): string => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));

/** A folder that the account of an embedded server can reach. */
export async function makeReachableFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hathi-examples-"));
  await chmod(folder, 0o755);
  return folder;
}

/** To be called at the top of a test file. */
export function setStage(): Stage {
  let folder: string;
  let server: Awaited<ReturnType<typeof startEmbedded>>;
  beforeAll(async () => {
    folder = await makeReachableFolder();
    server = await startEmbedded({ dataDir: join(folder, ".hathi"), profile: "test" });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const start: Stage["start"] = (script, env, args) => startExample(script, folder, env, args);
  return {
    folder: () => folder,
    connectionString: () => server.connectionString,
    start,
    play: (script, env) => start(script, env).ended,
  };
}

export function startExample(
  script: string,
  cwd: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): RunningProgram {
  return startCommand(process.execPath, [examplePath(script), ...args], { cwd, env, input: "" });
}
