/**
 * The columns of `_private_jobs`, as rows are handed to users. The id is made a string by the database, since a driver's own
 * parser for bigint may be set to anything.
 */
export const jobColumns = `job.id::text as id, job.job_queue_id, job.task_id, job.payload, job.priority, job.run_at,
      job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at, job.key, job.locked_at,
      job.locked_by, job.revision, job.flags, job.is_available`;
