import { statement } from "../statement.ts";
import { stateOfJob } from "./job-state.ts";

export interface JobCountRow {
  readonly state: "waiting" | "scheduled" | "running" | "dead";
  readonly task_identifier: string;
  readonly queue_name: string | null;
  readonly count: number;
}

/** How many pages of 8 kB the table of jobs has. */
export const jobTablePages = statement<{ schema: string }, { readonly pages: number }>({
  name: "job_table_pages",
  values: ({ schema }) => [schema],
  text: `select (pg_relation_size(pg_catalog.format('%I._private_jobs', $1::text)::regclass) / 8192)::float8 as pages`,
});

const counted = (sample: string): string => `
  with counts as materialized (
    select ${stateOfJob} as state, job.task_id, job.job_queue_id, count(*)::float8 as count
    from graphile_worker._private_jobs as job ${sample}
    group by 1, 2, 3
  )
  select counts.state, task.identifier as task_identifier, queue.queue_name, counts.count
  from counts
  join graphile_worker._private_tasks as task on task.id = counts.task_id
  left join graphile_worker._private_job_queues as queue on queue.id = counts.job_queue_id`;

/** Jobs by state, task and queue; reads the whole table. */
export const countAllJobs = statement<Record<string, never>, JobCountRow>({
  name: "count_all_jobs",
  values: () => [],
  text: counted(""),
});

/** The same among a percentage of the table's pages, picked at random. */
export const countSampledJobs = statement<{ percent: number }, JobCountRow>({
  name: "count_sampled_jobs",
  values: ({ percent }) => [percent],
  text: counted("tablesample system ($1::float4)"),
});

/** Running jobs are too few to be found in a sample. */
export const countRunningJobs = statement<Record<string, never>, { readonly count: number }>({
  name: "count_running_jobs",
  values: () => [],
  text: `select count(*)::float8 as count from graphile_worker._private_jobs where locked_at is not null`,
});

export interface OldestJobRow {
  readonly id: string;
  readonly task_identifier: string;
  readonly run_at: Date;
  readonly waiting_seconds: number;
}

/** The job that has been due the longest: the first of each priority is one index lookup, wherever it is. */
export const oldestWaitingJob = statement<Record<string, never>, OldestJobRow>({
  name: "oldest_waiting_job",
  values: () => [],
  text: `
    with recursive priorities as (
      (select priority from graphile_worker._private_jobs where is_available order by priority limit 1)
      union all
      select (
        select job.priority from graphile_worker._private_jobs as job
        where job.is_available and job.priority > priorities.priority
        order by job.priority limit 1
      )
      from priorities
      where priorities.priority is not null
    )
    select job.id, task.identifier as task_identifier, job.run_at,
      extract(epoch from now() - job.run_at)::float8 as waiting_seconds
    from priorities
    cross join lateral (
      select id, task_id, run_at from graphile_worker._private_jobs as first
      where first.is_available and first.priority = priorities.priority and first.run_at <= now()
      order by first.run_at limit 1
    ) as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    order by job.run_at, job.id
    limit 1`,
});
