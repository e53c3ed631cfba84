/** The state of a job, most decisive first; `job` is the row. */
export const stateOfJob = `
  case
    when job.locked_at is not null then 'running'
    when job.attempts >= job.max_attempts then 'failed'
    when job.run_at > now() then 'scheduled'
    else 'ready'
  end`;
