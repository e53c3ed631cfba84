import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { until } from "./wait.ts";

/** A real Node process that a test started; it does not outlive the test. */
export interface TestProcess {
  readonly pid: number;
  /** Everything it has written so far, both streams. */
  output(): string;
  /** Waits until a line of the output matches. */
  says(pattern: RegExp): Promise<RegExpMatchArray>;
  send(line: string): void;
  kill(signal: NodeJS.Signals): void;
  /** How it ended: an exit code, or a signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** Starts a script of this folder; with another Node, if one is given. */
export function startProcess(
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string | undefined>> = {},
  node = process.execPath,
): TestProcess {
  const file = fileURLToPath(new URL(script, import.meta.url));
  // Vitest's own variables would make libraries in the child believe that they are under test.
  const { VITEST: _vitest, NODE_ENV: _nodeEnv, ...inherited } = process.env;
  const child = spawn(node, [file, ...args], { env: { ...inherited, ...env } });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  child.stdin.on("error", () => undefined);
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? signal ?? 1));
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    pid: child.pid ?? -1,
    output: () => output,
    says: (pattern) =>
      until(
        () => {
          const match = output.match(pattern);
          if (!match && child.exitCode !== null)
            throw new Error(`Ended with ${child.exitCode} before ${pattern}:\n${output}`);
          return match;
        },
        { what: `the process says ${pattern}`, withinMs: 50_000 },
      ),
    send: (line) => void child.stdin.write(`${line}\n`),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}
