import { statement } from "../statement.ts";
import { stateOfJob } from "./job-state.ts";
import type { ListedJobRow } from "./list-jobs.ts";

export interface ShownJobRow extends ListedJobRow {
  readonly payload: unknown;
}

/** Everything about one job, its payload included. */
export const showJob = statement<{ id: string }, ShownJobRow>({
  name: "show_job",
  values: ({ id }) => [id],
  text: `
    select
      job.id, ${stateOfJob} as state, task.identifier as task_identifier, queue.queue_name,
      job.payload, job.priority, job.run_at, job.attempts, job.max_attempts, job.last_error, job.created_at,
      job.updated_at, job.key, job.locked_at, job.locked_by, job.revision, job.flags
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
    where job.id = $1::bigint`,
});
