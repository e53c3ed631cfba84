import { JobSpecError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";

/** `running` is locked by a pool, `failed` has no attempt left, `scheduled` may not run yet, `ready` could run now. */
export const jobStates = ["ready", "scheduled", "running", "failed"] as const;
export type JobState = (typeof jobStates)[number];

/** Which jobs are meant; what is left out does not matter. */
export interface JobFilter {
  readonly state?: JobState | undefined;
  /** A task's identifier. */
  readonly task?: string | undefined;
  /** A queue's name. */
  readonly queue?: string | undefined;
  readonly key?: string | undefined;
  /** Added at this moment or later. */
  readonly since?: Date | undefined;
  /** Occurs, whatever the case, in the payload, the key, the task's name or the last error. */
  readonly search?: string | undefined;
}

export function checkState(state: string): JobState {
  const found = jobStates.find((known) => known === state);
  if (found) return found;
  // Graphile Worker's Rust port and the glossary call two of them by other names.
  if (state === "locked") return "running";
  if (state === "dead") return "failed";
  throw new JobSpecError(
    `'${state}' is no state of a job; it is one of ${jobStates.join(", ")}.${suggestion(state, jobStates)}`,
  );
}
