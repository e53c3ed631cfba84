/**
 * The columns of `_private_jobs`, as rows are handed to users. The id is made a string by the database, since a driver's own
 * parser for bigint may be set to anything.
 */
export const jobColumns = `job.id::text as id, job.job_queue_id, job.task_id, job.payload, job.priority, job.run_at,
      job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at, job.key, job.locked_at,
      job.locked_by, job.revision, job.flags, job.is_available`;

const isLarge = "coalesce(pg_catalog.pg_column_size(job.payload) > 8000, false)";
const shortError = `case when pg_catalog.pg_column_size(job.last_error) > 8000
      then pg_catalog.substr(job.last_error, 1, 8000) else job.last_error end`;

/** The same without a large payload (`is_large` marks it), and with the beginning of a long error: as in a claim. */
export const lightJobColumns = `${jobColumns
  .replace("job.payload", `case when ${isLarge} then null else job.payload end as payload`)
  .replace("job.last_error", `${shortError} as last_error`)}, ${isLarge} as is_large`;
