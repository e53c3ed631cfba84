import { loadEnvFiles } from "../../src/cli/env-files.ts";
import { runProgram as runHere } from "../../src/cli/program.ts";
import { cleanEnvironment, type ProgramEnd, type ProgramOptions, toEnd } from "./program.ts";

/** The folder, the environment and the streams belong to the process, so commands run one after the other. */
let last: Promise<unknown> = Promise.resolve();

/** Runs a command to its end, in this process: that takes a fraction of what a process of its own does. For commands that only ask and answer. */
export function runCommand(args: readonly string[], options: Pick<ProgramOptions, "cwd" | "env">): Promise<ProgramEnd> {
  const end = last.then(() => runNow(args, options));
  last = end.catch(() => undefined);
  return end;
}

async function runNow(args: readonly string[], { cwd, env }: Pick<ProgramOptions, "cwd" | "env">): Promise<ProgramEnd> {
  const [folder, variables, exitCode] = [process.cwd(), process.env, process.exitCode];
  const [stdout, stderr] = [listenTo(process.stdout), listenTo(process.stderr)];
  process.chdir(cwd);
  process.env = { ...cleanEnvironment(), ...env };
  try {
    loadEnvFiles(cwd);
    const code = await runHere(args);
    return toEnd({ code, signal: null, stdout: stdout.heard(), stderr: stderr.heard() });
  } finally {
    process.env = variables;
    process.chdir(folder);
    process.exitCode = exitCode;
    stdout.stop();
    stderr.stop();
  }
}

function listenTo(stream: NodeJS.WriteStream): { heard(): string; stop(): void } {
  const { write } = stream;
  let heard = "";
  stream.write = (chunk: string | Uint8Array) => {
    heard += String(chunk);
    return true;
  };
  return {
    heard: () => heard,
    stop: () => {
      stream.write = write;
    },
  };
}
