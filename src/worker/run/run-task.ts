import type { Job } from "../../job.ts";
import type { JobHelpers, Task } from "../../task.ts";
import { batchOutcome, isBatchResult } from "./batch-result.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import { resultText } from "./result-text.ts";

/** Runs a job's task to its end. Never rejects: whatever happens is an outcome. */
export async function runTask(job: Job, task: Task, helpers: JobHelpers, keepsResult = false): Promise<RunOutcome> {
  try {
    const result = await task(job.payload, helpers);
    if (keepsResult) return { kind: "succeeded", job, result: resultText(job, result) };
    return isBatchResult(job, result) ? await batchOutcome(job, result) : { kind: "succeeded", job };
  } catch (thrown) {
    return failed(job, thrown);
  }
}
