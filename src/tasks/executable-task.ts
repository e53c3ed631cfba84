import { type ChildProcess, spawn } from "node:child_process";
import { codeOf } from "../errors.ts";
import type { FileDetails } from "../hooks/plugin.ts";
import type { JobHelpers, Task } from "../task.ts";
import { defaultAbortGraceMs } from "../task-options.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import { relayOutput } from "./relay-output.ts";

const longestRunMs = 4 * 60 * 60 * 1000;

/** A task that runs a program: the payload on its standard input, the job in its environment, success as exit code 0. */
export function executableTask({ fullPath }: FileDetails, taskIdentifier: string): Task {
  return (payload, helpers) =>
    new Promise<void>((resolve, reject) => {
      const child = spawn(fullPath, {
        env: environmentOf(taskIdentifier, helpers),
        stdio: ["pipe", "pipe", "pipe"],
        timeout: longestRunMs,
      });
      const letGo = stopOnAbort(child, helpers);
      relayOutput(child.stdout, (line) => helpers.logger.info(line));
      const errors = relayOutput(child.stderr, (line) => helpers.logger.error(line));
      // A program need not read its payload.
      child.stdin.on("error", () => undefined);
      child.stdin.end(JSON.stringify({ payload }));
      child.on("error", (error) => {
        letGo();
        reject(describeStartFailure(fullPath, error));
      });
      child.on("close", (code, signal) => {
        letGo();
        if (code === 0) return resolve();
        const end = code === null ? `was ended by ${signal}` : `failed with exit code ${code}`;
        reject(new Error(`Executable '${fullPath}' ${end}${errors.last ? `: ${errors.last}` : ""}`));
      });
    });
}

/** Asks the program to end when the job's signal aborts, and kills it if it does not. Returns a function that cancels this. */
function stopOnAbort(child: ChildProcess, { abortSignal, abortGrace = defaultAbortGraceMs }: JobHelpers): () => void {
  let killTimer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    child.kill("SIGTERM");
    killTimer = setTimeout(() => child.kill("SIGKILL"), Math.min(abortGrace, 2 ** 31 - 1));
  };
  if (abortSignal.aborted) stop();
  else abortSignal.addEventListener("abort", stop, { once: true });
  return () => {
    clearTimeout(killTimer);
    abortSignal.removeEventListener("abort", stop);
  };
}

function environmentOf(taskIdentifier: string, { job }: JobHelpers): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    GRAPHILE_WORKER_PAYLOAD_FORMAT: "json",
    GRAPHILE_WORKER_TASK_IDENTIFIER: taskIdentifier,
    GRAPHILE_WORKER_JOB_ID: job.id,
    GRAPHILE_WORKER_JOB_ATTEMPTS: String(job.attempts),
    GRAPHILE_WORKER_JOB_MAX_ATTEMPTS: String(job.max_attempts),
    GRAPHILE_WORKER_JOB_PRIORITY: String(job.priority),
    GRAPHILE_WORKER_JOB_RUN_AT: job.run_at.toISOString(),
  };
  // A key of an outer job must not be taken for this job's.
  if (job.key === null) delete env.GRAPHILE_WORKER_JOB_KEY;
  else env.GRAPHILE_WORKER_JOB_KEY = job.key;
  return env;
}

function describeStartFailure(file: string, error: Error): Error {
  const code = codeOf(error);
  if (code === "ABORT_ERR") return error;
  const reason =
    code === "ENOENT"
      ? "the file, or the interpreter its first line names, was not found"
      : code === "ENOEXEC"
        ? "it is neither a program nor a script with a '#!' line"
        : error.message;
  return new Error(`Could not start '${file}': ${reason}.`);
}
