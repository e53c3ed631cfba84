import type { JobHelpers } from "../../task.ts";
import { batchOutcome, isBatchResult } from "./batch-result.ts";
import type { JobRun } from "./job-run.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import { resultText } from "./result-text.ts";

/** Runs a job's task to its end. Never rejects: whatever happens is an outcome. */
export async function runTask({ job, task, options }: JobRun, helpers: JobHelpers): Promise<RunOutcome> {
  try {
    const result = await task(job.payload, helpers);
    if (options?.keepResult) return { kind: "succeeded", job, result: resultText(job, result) };
    return isBatchResult(job, result) ? await batchOutcome(job, result) : { kind: "succeeded", job };
  } catch (thrown) {
    return failed(job, thrown);
  }
}
