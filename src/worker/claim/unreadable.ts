import type { Job } from "../../job.ts";
import type { Task } from "../../task.ts";

/** Jobs that cannot be handed to their task, and why. */
const errorByJob = new WeakMap<Job, Error>();

export function refuse(job: Job, error: Error): void {
  errorByJob.set(job, error);
}

/** What is run in place of such a job's task: it fails, and so uses one of its attempts. */
export function refusalOf(job: Job): Task | undefined {
  const error = errorByJob.get(job);
  return error && (() => Promise.reject(error));
}
