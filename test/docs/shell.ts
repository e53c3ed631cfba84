import { type ChildProcess, spawn } from "node:child_process";
import { onTestFinished } from "vitest";
import { until } from "../support/wait.ts";
import { freshEnvironment } from "./account.ts";

export interface ShellOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Runs it as this user. */
  readonly uid?: number | undefined;
  /** A fresh login with this home directory: nothing of our own environment reaches it. */
  readonly home?: string;
  /** Shows what it says while it runs. */
  readonly isShown?: boolean;
}

export interface Command {
  readonly output: () => string;
  readonly ended: Promise<number | null>;
  says(pattern: RegExp): Promise<void>;
  /** What a terminal does on Ctrl-C: every process of the command hears it. */
  interrupt(): void;
}

/** Types a line into a shell. Nothing that names a database, and nothing of the test runner, reaches it. */
export function type(line: string, { cwd, env, uid, home, isShown }: ShellOptions): Command {
  // A shell at a terminal outlives Ctrl-C and says how the command ended.
  const child: ChildProcess = spawn("sh", ["-c", `trap : INT\n${line}`], {
    cwd,
    env: { ...(home === undefined ? cleanEnvironment() : freshEnvironment(home)), ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid !== undefined && { uid, gid: uid }),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream!.setEncoding("utf8").on("data", (text) => {
      output += text;
      if (isShown) process.stdout.write(text);
    });
  }
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid!, name);
    } catch {
      // All of them have ended.
    }
  };
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  onTestFinished(async () => {
    signal("SIGKILL");
    await ended;
  });
  return {
    output: () => output,
    ended,
    interrupt: () => signal("SIGINT"),
    says: async (pattern) => {
      const what = `'${line}' says ${pattern}`;
      await until(
        () => pattern.test(output) || (child.exitCode !== null && fail(`${what}, but it ended:\n${output}`)),
        {
          what: `${what}`,
          withinMs: 180_000,
        },
      );
    },
  };
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const isForeign = (name: string): boolean => /^(PG|DATABASE_URL|GRAPHILE_|HATHI_|VITEST|NODE_ENV|npm_)/i.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isForeign(name)));
}

function fail(message: string): never {
  throw new Error(message);
}
