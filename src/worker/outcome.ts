import { toError } from "../errors.ts";
import type { Job } from "../job.ts";

/** How a job ended. */
export type Outcome =
  | { readonly kind: "succeeded"; readonly job: Job }
  | {
      readonly kind: "failed";
      readonly job: Job;
      readonly error: Error;
      /** Of a batch job, the items that are left to do, as JSON text. */
      readonly remaining?: string;
      readonly itemErrors?: Error[];
    };

export function failed(job: Job, thrown: unknown): Outcome {
  return { kind: "failed", job, error: toError(thrown) };
}

export function isLastAttempt(job: Job): boolean {
  return job.attempts >= job.max_attempts;
}

/** What is stored as `last_error`: text that PostgreSQL can hold. */
export function errorText(error: Error): string {
  // A message may be anything: errors are made by users too.
  const text = String(error.message || error.name || "Non error or error without message thrown.");
  return text.replaceAll("\u0000", "");
}
