import { statement } from "../statement.ts";

export interface QueueRow {
  readonly queue_name: string;
  readonly waiting: number;
  readonly scheduled: number;
  readonly next_run_at: Date | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
}

/**
 * Queues that are held or have jobs waiting, fullest first. Waiting jobs are counted in indexes alone; dead ones are not in them, and a queue with nothing but
 * those is left out. With `lookAt`, only so many jobs are counted: all, if there are no more; otherwise those that come first among the jobs that are claimed next.
 */
export const listQueues = statement<{ limit: number; search: string | null; lookAt: number | null }, QueueRow>({
  name: "list_queues",
  values: ({ limit, search, lookAt }) => [limit, search, lookAt],
  text: `
    with indexed as materialized (
      select job.job_queue_id, job.run_at
      from graphile_worker._private_jobs as job
      where job.is_available and job.job_queue_id is not null
      order by job.task_id, job.job_queue_id, job.priority, job.run_at, job.id
      limit $3::bigint + 1
    ), next as materialized (
      select walked.job_queue_id, walked.run_at
      from (
        select job.job_queue_id, job.run_at
        from graphile_worker._private_jobs as job
        where job.is_available
        order by job.priority, job.run_at
        limit case when (select count(*) from indexed) > $3::bigint then $3::bigint else 0 end
      ) as walked
      where walked.job_queue_id is not null
    ), counts as materialized (
      select queued.job_queue_id,
        count(*) filter (where queued.run_at <= now())::float8 as waiting,
        count(*) filter (where queued.run_at > now())::float8 as scheduled,
        min(queued.run_at) as next_run_at
      from (
        select * from next
        union all
        select * from indexed where not exists (select from next)
      ) as queued
      group by queued.job_queue_id
    )
    select queue.queue_name, coalesce(counts.waiting, 0) as waiting, coalesce(counts.scheduled, 0) as scheduled,
      counts.next_run_at, nullif(queue.locked_at, 'infinity') as locked_at,
      nullif(queue.locked_by, 'hathi:paused') as locked_by
    from graphile_worker._private_job_queues as queue
    left join counts on counts.job_queue_id = queue.id
    where (counts.job_queue_id is not null or queue.locked_at is not null)
      and ($2::text is null or position(lower($2::text) in lower(queue.queue_name)) > 0)
    order by waiting desc, scheduled desc, queue.queue_name
    limit $1`,
});
