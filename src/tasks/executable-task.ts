import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { FileDetails } from "../hooks.ts";
import type { JobHelpers, Task } from "../task.ts";
import { codeOf } from "./error-code.ts";

const longestRunMs = 4 * 60 * 60 * 1000;

/** A task that runs a program: the payload on its standard input, the job in its environment, success as exit code 0. */
export function executableTask({ fullPath }: FileDetails, taskIdentifier: string): Task {
  return (payload, helpers) =>
    new Promise<void>((resolve, reject) => {
      const child = spawn(fullPath, {
        env: environmentOf(taskIdentifier, helpers),
        stdio: ["pipe", "pipe", "pipe"],
        signal: helpers.abortSignal,
        timeout: longestRunMs,
      });
      let lastError = "";
      relay(child.stdout, (line) => helpers.logger.info(line));
      relay(child.stderr, (line) => {
        lastError = line;
        helpers.logger.error(line);
      });
      // A program need not read its payload.
      child.stdin.on("error", () => undefined);
      child.stdin.end(JSON.stringify({ payload }));
      child.on("error", (error) => reject(describeStartFailure(fullPath, error)));
      child.on("close", (code, signal) => {
        if (code === 0) return resolve();
        const end = code === null ? `was ended by ${signal}` : `failed with exit code ${code}`;
        reject(new Error(`Executable '${fullPath}' ${end}${lastError ? `: ${lastError}` : ""}`));
      });
    });
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

function relay(stream: Readable, log: (line: string) => void): void {
  createInterface({ input: stream }).on("line", (line) => {
    if (line.trim() !== "") log(line);
  });
}

function describeStartFailure(file: string, error: Error): Error {
  const reason =
    codeOf(error) === "ENOENT"
      ? "the file, or the interpreter its first line names, was not found"
      : codeOf(error) === "ENOEXEC"
        ? "it is neither a program nor a script with a '#!' line"
        : error.message;
  return codeOf(error) === "ABORT_ERR" ? error : new Error(`Could not start '${file}': ${reason}.`, { cause: error });
}
