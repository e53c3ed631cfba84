import { maxTextBytes } from "../../error-text.ts";
import { messageOf, toError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { withItsTrace } from "../../trace-context.ts";
import { clip } from "../../util/clip.ts";
import { failed, type RunOutcome } from "./outcome.ts";

/** True if the task answered for each item of its payload on its own. */
export function isBatchResult(job: Job, result: unknown): result is unknown[] {
  return Array.isArray(result) && Array.isArray(job.payload);
}

/** Waits for all items; those that failed are what is left of the job. */
export async function batchOutcome(job: Job, results: readonly unknown[]): Promise<RunOutcome> {
  const items = job.payload as unknown[];
  const ends = await Promise.allSettled(results);
  if (ends.length !== items.length) {
    console.warn(
      `Task '${job.task_identifier}' (job ${job.id}) returned ${ends.length} results for ${items.length} items; ` +
        "a batch task must return one promise for each item. The job is taken as done.",
    );
    return { kind: "succeeded", job };
  }
  const remaining: unknown[] = [];
  const itemErrors: Error[] = [];
  ends.forEach((end, index) => {
    if (end.status === "fulfilled") return;
    remaining.push(withItsTrace(items[index]));
    itemErrors.push(toError(end.reason));
  });
  if (itemErrors.length === 0) return { kind: "succeeded", job };
  const messages = itemErrors.map((error) => clip(messageOf(error), maxTextBytes / 8)).join("\n");
  const error = new Error(clip(`Batch failures:\n${messages}`, maxTextBytes), {
    cause: new AggregateError(itemErrors),
  });
  return failed(job, error, { remaining: JSON.stringify(remaining), itemErrors });
}
