import type { RescheduleParams } from "../db/statements/admin.ts";
import { JobSpecError } from "../errors.ts";
import { checkInteger, checkMoment, optional, smallest } from "../job-checks.ts";
import { suggestion } from "../util/nearest.ts";

export interface RescheduleOptions {
  /** A date, an ISO string, or `"now"` for the time of the database. */
  runAt?: string | Date;
  /** Lower numbers run first. */
  priority?: number;
  /** Attempts made so far. */
  attempts?: number;
  /** Attempts before the job fails permanently. */
  maxAttempts?: number;
}

const keys = ["runAt", "priority", "attempts", "maxAttempts"];

export function checkReschedule(options: RescheduleOptions): Omit<RescheduleParams, "ids"> {
  for (const key of Object.keys(options)) {
    if (!keys.includes(key))
      throw new JobSpecError(`Unknown key '${key}' in 'rescheduleJobs'.${suggestion(key, keys)}`);
  }
  return {
    runAt: optional(options.runAt, checkTextOrDate),
    priority: optional(options.priority, (value) => checkInteger("priority", value, smallest)),
    attempts: optional(options.attempts, (value) => checkInteger("attempts", value, 0)),
    maxAttempts: optional(options.maxAttempts, (value) => checkInteger("maxAttempts", value, 1)),
  };
}

/** A string is left as it is, since PostgreSQL knows its own clock and time zone. */
function checkTextOrDate(value: unknown): string {
  if (value === "now") return value;
  if (typeof value !== "string" || Number.isNaN(Date.parse(value))) return checkMoment("runAt", value);
  return value;
}
