import { toError } from "../errors.ts";
import type { Job } from "../job.ts";

/** How a job ended. */
export type Outcome =
  | { readonly kind: "succeeded"; readonly job: Job }
  | {
      readonly kind: "failed";
      readonly job: Job;
      readonly error: Error;
      /** Of a batch job, only these items are left to do. */
      readonly remaining?: readonly unknown[];
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
  const text = error.message || String(error) || "Non error or error without message thrown.";
  return text.replaceAll("\u0000", "");
}
