import { inspect } from "node:util";
import type { NewJob } from "../db/statements/add.ts";
import type { Guard } from "../db/statements/guards.ts";
import { JobSpecError } from "../errors.ts";
import type { JobKeyMode } from "../job.ts";
import { checkInteger, checkMoment, checkName, checkText, optional, smallest } from "../job-checks.ts";
import { suggestion } from "../util/nearest.ts";
import { readGuard } from "./guard.ts";
import { payloadToJson } from "./payload.ts";

export type CheckedSpec = Omit<NewJob, "identifier" | "payload"> & {
  readonly jobKeyMode: JobKeyMode | null;
  readonly cancelRunning: boolean;
  readonly guard: Guard | null;
};

const specKeys = [
  "queueName",
  "runAt",
  "priority",
  "maxAttempts",
  "jobKey",
  "jobKeyMode",
  "cancelRunning",
  "flags",
  "debounce",
  "throttle",
  "singleton",
];
const keyModes = ["replace", "preserve_run_at", "unsafe_dedupe"];

/** Checks a job before anything is written and makes it ready for the database. */
export function toNewJob(
  identifier: string,
  payload: unknown,
  spec: object,
  useNodeTime: boolean,
): NewJob & CheckedSpec {
  checkText("identifier", identifier, 128);
  if (typeof spec !== "object") {
    throw new JobSpecError(`The spec of a job for '${identifier}' must be an object, got ${inspect(spec)}.`);
  }
  for (const key of Object.keys(spec)) {
    if (specKeys.includes(key)) continue;
    throw new JobSpecError(
      `Unknown key '${key}' in the spec of a job for '${identifier}'.${suggestion(key, specKeys)}`,
    );
  }
  const given = spec as Record<string, unknown>;
  return {
    identifier,
    payload: payloadToJson(payload, identifier),
    queueName: optional(given.queueName, (value) => checkName("queueName", value, 128)),
    runAt:
      optional(given.runAt, (value) => checkMoment("runAt", value)) ?? (useNodeTime ? new Date().toISOString() : null),
    maxAttempts: optional(given.maxAttempts, (value) => checkInteger("maxAttempts", value, 1)),
    jobKey: optional(given.jobKey, (value) => checkName("jobKey", value, 512)),
    priority: optional(given.priority, (value) => checkInteger("priority", value, smallest)),
    flags: optional(given.flags, checkFlags),
    jobKeyMode: optional(given.jobKeyMode, checkKeyMode),
    cancelRunning: optional(given.cancelRunning, (value) => checkCancelRunning(value, given.jobKey)) ?? false,
    guard: readGuard(given),
  };
}

/** An empty list is none. Numbers are names, too. */
function checkFlags(value: unknown): readonly string[] | null {
  const isText = (flag: unknown): boolean => typeof flag === "string" && flag !== "" && !flag.includes("\0");
  const flags = Array.isArray(value) ? value.map((flag) => (typeof flag === "number" ? String(flag) : flag)) : [null];
  if (flags.every(isText)) return flags.length > 0 ? (flags as string[]) : null;
  throw new JobSpecError(`'flags' must be an array of non-empty strings, got ${inspect(value)}.`);
}

function checkCancelRunning(value: unknown, jobKey: unknown): boolean {
  if (typeof value !== "boolean")
    throw new JobSpecError(`'cancelRunning' must be true or false, got ${inspect(value)}.`);
  if (value && (jobKey === undefined || jobKey === null)) {
    throw new JobSpecError("'cancelRunning' needs a 'jobKey': it cancels the running job of that key.");
  }
  return value;
}

function checkKeyMode(value: unknown): JobKeyMode {
  if (typeof value === "string" && keyModes.includes(value)) return value as JobKeyMode;
  throw new JobSpecError(
    `'jobKeyMode' must be 'replace', 'preserve_run_at' or 'unsafe_dedupe', got ${inspect(value)}.` +
      (typeof value === "string" ? suggestion(value, keyModes) : ""),
  );
}
