import { statement } from "../statement.ts";
import { stateOfJob } from "./job-state.ts";

export interface ListedJobRow {
  readonly id: string;
  readonly state: "ready" | "scheduled" | "running" | "failed";
  readonly task_identifier: string;
  readonly queue_name: string | null;
  readonly priority: number;
  readonly run_at: Date;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly key: string | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
  readonly revision: number;
  readonly flags: { [flag: string]: true } | null;
}

export interface JobFilterParams {
  readonly state: string | null;
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  readonly since: Date | null;
  readonly search: string | null;
}

/**
 * A page is one walk down the primary key from where the last page ended: no offset, no count, no sort. A filter only makes
 * the walk longer; at worst it reads the whole table once, in the order it lies on disk.
 */
const matching = `
  from graphile_worker._private_jobs as job
  where ($1::text is null or ${stateOfJob} = $1::text)
    and ($2::text is null or job.task_id = (select id from graphile_worker._private_tasks where identifier = $2::text))
    and ($3::text is null or job.job_queue_id = (select id from graphile_worker._private_job_queues where queue_name = $3::text))
    and ($4::text is null or job.key = $4::text)
    and ($5::timestamptz is null or job.created_at >= $5::timestamptz)
    and ($6::text is null or position(lower($6::text) in lower(concat_ws(' ', job.key, job.last_error, job.payload::text,
      (select identifier from graphile_worker._private_tasks where id = job.task_id)))) > 0)`;

const filterValues = ({ state, task, queue, key, since, search }: JobFilterParams): unknown[] => [
  state,
  task,
  queue,
  key,
  since,
  search,
];

/** One page of jobs, newest first. */
export const listJobs = statement<JobFilterParams & { before: string | null; limit: number }, ListedJobRow>({
  name: "list_jobs",
  values: ({ before, limit, ...filter }) => [...filterValues(filter), before, limit],
  text: `
    with page as materialized (
      select job.id ${matching}
        and ($7::bigint is null or job.id < $7::bigint)
      order by job.id desc
      limit $8
    )
    select
      job.id, ${stateOfJob} as state, task.identifier as task_identifier, queue.queue_name,
      job.priority, job.run_at, job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at,
      job.key, job.locked_at, job.locked_by, job.revision, job.flags
    from page
    join graphile_worker._private_jobs as job on job.id = page.id
    join graphile_worker._private_tasks as task on task.id = job.task_id
    left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
    order by job.id desc`,
});

/** The ids of jobs that match, oldest first, from behind an id on. */
export const listJobIds = statement<JobFilterParams & { after: string; limit: number }, { readonly id: string }>({
  name: "list_job_ids",
  values: ({ after, limit, ...filter }) => [...filterValues(filter), after, limit],
  text: `
    select job.id ${matching}
      and job.id > $7::bigint
    order by job.id
    limit $8`,
});

/** How many jobs match; reads all of them. */
export const countJobs = statement<JobFilterParams, { readonly count: number }>({
  name: "count_jobs",
  values: filterValues,
  text: `select count(*)::float8 as count ${matching}`,
});
