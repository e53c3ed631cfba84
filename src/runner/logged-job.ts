import type { Job } from "../job.ts";

/** A job as a logger gets it. Spelt out, since one is made for every job that is logged. */
export function withoutPayload(job: Job): Omit<Job, "payload"> {
  return {
    id: job.id,
    task_identifier: job.task_identifier,
    job_queue_id: job.job_queue_id,
    attempts: job.attempts,
    max_attempts: job.max_attempts,
    priority: job.priority,
    run_at: job.run_at,
    key: job.key,
    flags: job.flags,
    revision: job.revision,
    created_at: job.created_at,
    updated_at: job.updated_at,
    locked_at: job.locked_at,
    locked_by: job.locked_by,
    last_error: job.last_error,
    task_id: job.task_id,
    is_available: job.is_available,
  };
}
