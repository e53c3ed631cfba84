import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import type { EmbeddedOptions } from "../../src/index.ts";
import type { Account } from "./accounts.ts";
import { bundledNative } from "./kit.ts";

/** What a child tells in one line of JSON. */
interface Told {
  readonly connectionString: string;
  readonly port: number;
  readonly origin: string;
  readonly version: number;
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly stopped: boolean;
  readonly interrupted: boolean;
  readonly rows: unknown;
  readonly error: { readonly name: string; readonly code: string; readonly message: string };
}

interface Child {
  readonly process: ChildProcess;
  /** The next line the child tells. */
  told(): Promise<Told>;
  stop(): Promise<Told>;
  kill(): Promise<void>;
}

interface ChildRequest {
  readonly kit: string;
  readonly options: EmbeddedOptions;
  readonly account?: Account | undefined;
  readonly home?: string;
  /** Leave out the pointer to the repository's binaries, so that the kit must find its own. */
  readonly ownNative?: boolean;
  readonly nodeArgs?: readonly string[];
}

/** Starts a process that calls `startEmbedded`, in a process group of its own as a shell would. */
export function startChild({ kit, options, account, home, ownNative, nodeArgs = [] }: ChildRequest): Child {
  const { HATHI_EMBEDDED_NATIVE: _, XDG_CACHE_HOME: __, ...env } = process.env;
  if (ownNative !== true) env.HATHI_EMBEDDED_NATIVE = bundledNative;
  if (home !== undefined) env.HOME = home;
  const script = [...nodeArgs, join(kit, "child.mjs"), JSON.stringify({ account, options })];
  const child = spawn(process.execPath, script, {
    cwd: kit,
    env,
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(kill);

  const told = async (): Promise<Told> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("The child ended without a word.");
    return JSON.parse(value) as Told;
  };
  const stop = (): Promise<Told> => {
    child.stdin.write("stop\n");
    return told();
  };
  return { process: child, told, stop, kill };
}
