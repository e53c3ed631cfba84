import { JobSpecError } from "../errors.ts";
import type { JobId } from "../job-checks.ts";
import { suggestion } from "../util/nearest.ts";

/** `running` is locked by a pool, `dead` has no attempt left, `scheduled` may not run yet, `waiting` could run now. */
export const jobStates = ["waiting", "scheduled", "running", "dead"] as const;
export type JobState = (typeof jobStates)[number];

/** Selects jobs. Fields left out match everything. */
export interface JobFilter {
  /** `waiting`, `scheduled`, `running` or `dead` (permanently failed). */
  readonly state?: JobState | undefined;
  /** A task's identifier. */
  readonly task?: string | undefined;
  /** A queue's name. */
  readonly queue?: string | undefined;
  /** A job key. */
  readonly key?: string | undefined;
  /** Added at this time or later. */
  readonly since?: Date | undefined;
  /** A string in the payload, the key, the task's name or the last error; case does not matter. */
  readonly search?: string | undefined;
  /** Added before this time. */
  readonly until?: Date | undefined;
  /** A `fingerprint` of `listErrors`: jobs whose last attempt failed like this, as far as history was kept. */
  readonly error?: string | undefined;
  /** Jobs with this id or a lower one. */
  readonly upTo?: JobId | undefined;
  /** Parts of payloads that `search` does not look into, as paths: `password`, `user.email`, `*.password` (any one key), `**.password` (at any depth). */
  readonly redact?: readonly string[] | undefined;
}

/** What Graphile Worker, its Rust port and other queues call them. */
const otherNames: Readonly<Record<string, JobState>> = { ready: "waiting", locked: "running", failed: "dead" };

export function checkState(state: string): JobState {
  const found = jobStates.find((known) => known === state);
  if (found) return found;
  const meant = otherNames[state];
  if (meant) return meant;
  throw new JobSpecError(
    `'${state}' is not a job state: use one of ${jobStates.join(", ")}.${suggestion(state, jobStates)}`,
  );
}
