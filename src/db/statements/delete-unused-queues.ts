import { statement } from "../statement.ts";

/** Forgets the names of queues that have no job and are not in use. */
export const deleteUnusedQueues = statement<object, object>({
  name: "delete_unused_queues",
  values: () => [],
  text: `
    delete from graphile_worker._private_job_queues as queue
    where queue.locked_at is null
      and not exists (select from graphile_worker._private_jobs as job where job.job_queue_id = queue.id)`,
});
