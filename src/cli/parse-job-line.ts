import type { AddJobsJobSpec } from "../index.ts";
import { suggestion } from "../util/nearest.ts";
import { UsageError } from "./usage-error.ts";

/** What a line may say, and what we call it. */
const names: Record<string, keyof AddJobsJobSpec> = {
  task: "identifier",
  identifier: "identifier",
  payload: "payload",
  queue: "queueName",
  queueName: "queueName",
  runAt: "runAt",
  priority: "priority",
  maxAttempts: "maxAttempts",
  key: "jobKey",
  jobKey: "jobKey",
  flags: "flags",
};

/** One job of a file of jobs. `place` is the file and line that messages name. */
export function parseJobLine(line: string, place: string): AddJobsJobSpec {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (error) {
    throw new UsageError(`${place}: not JSON: ${(error as Error).message}`);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new UsageError(`${place}: a job is a JSON object such as {"task":"hello","payload":{}}.`);
  }
  const spec: Record<string, unknown> = { payload: {} };
  for (const [name, value] of Object.entries(parsed)) {
    const key = names[name];
    if (!key) throw new UsageError(`${place}: unknown key '${name}'.${suggestion(name, Object.keys(names))}`);
    spec[key] = key === "runAt" ? parseDate(value, place) : value;
  }
  if (typeof spec.identifier !== "string") throw new UsageError(`${place}: the job has no "task".`);
  return spec as unknown as AddJobsJobSpec;
}

function parseDate(value: unknown, place: string): Date {
  const date = new Date(String(value));
  if (Number.isNaN(date.getTime()))
    throw new UsageError(`${place}: 'runAt' must be a date, got ${JSON.stringify(value)}.`);
  return date;
}
