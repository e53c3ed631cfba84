import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { until } from "./wait.ts";

/** The program as it is published; HATHI_MAIN names another build. */
export const mainFile = process.env.HATHI_MAIN ?? fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface ProgramOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Written to its standard input, which then ends. */
  readonly input?: string;
  /** Runs it as this user. */
  readonly uid?: number;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  /** Without the line that names the database. */
  readonly stderr: string;
  /** The line that names the database, if there was one. */
  readonly database: string | undefined;
}

/** A run of the program that a test watches; it does not outlive the test. */
export interface RunningProgram {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Waits until either stream matches. */
  says(pattern: RegExp, options?: { readonly withinMs?: number }): Promise<RegExpMatchArray>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<ProgramEnd>;
}

/** Starts the real program. Nothing of the test's environment that names a database or a colour reaches it. */
export function startProgram(args: readonly string[], options: ProgramOptions): RunningProgram {
  if (!existsSync(mainFile)) throw new Error(`'${mainFile}' is missing: run 'npm run build' first.`);
  return startCommand(process.execPath, [mainFile, ...args], options);
}

export function startCommand(command: string, args: readonly string[], options: ProgramOptions): RunningProgram {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...cleanEnvironment(), ...options.env },
    ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  child.stdin.on("error", () => undefined);
  if (options.input !== undefined) child.stdin.end(options.input);
  const ended = new Promise<ProgramEnd>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(toEnd({ code, signal, stdout, stderr })));
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    kill: (signal) => void child.kill(signal),
    ended,
    says: (pattern, { withinMs = 60_000 } = {}) =>
      until(
        () => {
          const found = stdout.match(pattern) ?? stderr.match(pattern);
          if (!found && child.exitCode !== null) {
            throw new Error(`Ended with ${child.exitCode} before ${pattern}:\n${stdout}\n${stderr}`);
          }
          return found;
        },
        { what: `the program says ${pattern}`, withinMs },
      ),
  };
}

/** Runs the program to its end. */
export function runProgram(args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  return startProgram(args, { input: "", ...options }).ended;
}

/** Takes the line that names the database out of what was said. */
export function toEnd({ stderr, ...end }: Omit<ProgramEnd, "database">): ProgramEnd {
  const [line] = /^Using .*\n/m.exec(stderr) ?? [];
  return { ...end, stderr: stderr.replace(line ?? "", ""), database: line?.trim() };
}

/** What tests give to a program of their own environment: nothing that names a database or a colour. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(PG|DATABASE_URL|GRAPHILE_|HATHI_|NO_COLOR|FORCE_COLOR|COLORTERM|CI$|VITEST|NODE_ENV|NO_LOG)/.test(name),
  );
  return Object.fromEntries(kept);
}
