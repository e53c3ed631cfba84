/** The state of a job, most decisive first; `job` is the row. */
export const stateOfJob = `
  case
    when job.locked_at is not null then 'running'
    when job.attempts >= job.max_attempts then 'dead'
    when job.run_at > now() then 'scheduled'
    else 'waiting'
  end`;

/** The same as conditions, in words that the planner has statistics and indexes for. */
export const conditionByState = {
  all: "true",
  waiting: "job.is_available and job.run_at <= now()",
  scheduled: "job.is_available and job.run_at > now()",
  running: "job.locked_at is not null",
  dead: "job.locked_at is null and job.attempts >= job.max_attempts",
} as const;
