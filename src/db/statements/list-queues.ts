import { statement } from "../statement.ts";

export interface QueueRow {
  readonly queue_name: string;
  readonly ready: number;
  readonly scheduled: number;
  readonly next_run_at: Date | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
}

/**
 * Queues that are held or have jobs waiting, fullest first. Waiting jobs are counted in the index of queued jobs alone;
 * failed ones are not in it, and a queue with nothing but those is left out.
 */
export const listQueues = statement<{ limit: number; search: string | null }, QueueRow>({
  name: "list_queues",
  values: ({ limit, search }) => [limit, search],
  text: `
    with waiting as materialized (
      select job_queue_id,
        count(*) filter (where run_at <= now())::float8 as ready,
        count(*) filter (where run_at > now())::float8 as scheduled,
        min(run_at) as next_run_at
      from graphile_worker._private_jobs
      where is_available and job_queue_id is not null
      group by job_queue_id
    )
    select queue.queue_name, coalesce(waiting.ready, 0) as ready, coalesce(waiting.scheduled, 0) as scheduled,
      waiting.next_run_at, queue.locked_at, queue.locked_by
    from graphile_worker._private_job_queues as queue
    left join waiting on waiting.job_queue_id = queue.id
    where (waiting.job_queue_id is not null or queue.locked_at is not null)
      and ($2::text is null or position(lower($2::text) in lower(queue.queue_name)) > 0)
    order by ready desc, scheduled desc, queue.queue_name
    limit $1`,
});
