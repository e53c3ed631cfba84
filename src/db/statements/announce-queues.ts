import { shortPatienceMs, statement } from "../statement.ts";

/** Wakes workers if any of these queues is free and has a job that is due. */
export const announceQueues = statement<{ queueIds: readonly number[]; clock: Date | null }, never>({
  name: "announce_queues",
  patienceMs: shortPatienceMs,
  values: ({ queueIds, clock }) => [queueIds, clock],
  text: `
    select pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || count(*) || '}')
    from graphile_worker._private_job_queues as queue
    where queue.id = any ($1::integer[])
      and queue.is_available
      and exists (
        select from graphile_worker._private_jobs as job
        where job.job_queue_id = queue.id and job.is_available and job.run_at <= coalesce($2::timestamptz, now())
      )
    having count(*) > 0`,
});
