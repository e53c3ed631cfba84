import { shortPatienceMs, statement } from "../statement.ts";

/** Deletes jobs whose attempts are used up, except those that another transaction is about to change. */
export const deleteDeadJobs = statement<object, object>({
  name: "delete_dead_jobs",
  values: () => [],
  text: `
    delete from graphile_worker._private_jobs
    where id in (
      select id
      from graphile_worker._private_jobs
      where attempts >= max_attempts and locked_at is null
      order by id
      for update skip locked
    )`,
});

/** Locks queues that have no job and are not in use, a batch at a time. One that an open add has chosen is passed over. */
export const lockUnusedQueues = statement<{ after: number; limit: number }, { readonly id: number }>({
  name: "lock_unused_queues",
  patienceMs: shortPatienceMs,
  values: ({ after, limit }) => [after, limit],
  text: `
    select queue.id
    from graphile_worker._private_job_queues as queue
    where queue.id > $1::integer
      and queue.locked_at is null
      and not exists (select from graphile_worker._private_jobs as job where job.job_queue_id = queue.id)
    order by queue.id
    limit $2::integer
    for update skip locked`,
});

/** Deletes those of them that still have no job: what was added until they were locked is seen now. */
export const deleteUnusedQueues = statement<{ ids: readonly number[] }, never>({
  name: "delete_unused_queues",
  patienceMs: shortPatienceMs,
  values: ({ ids }) => [ids],
  text: `
    delete from graphile_worker._private_job_queues as queue
    where queue.id = any ($1::integer[])
      and not exists (select from graphile_worker._private_jobs as job where job.job_queue_id = queue.id)`,
});

/** Locks tasks that have no job, except those to keep, a batch at a time. One that an open add has chosen is passed over. */
export const lockUnusedTasks = statement<
  { after: number; limit: number; keep: readonly string[] },
  { readonly id: number }
>({
  name: "lock_unused_tasks",
  patienceMs: shortPatienceMs,
  values: ({ after, limit, keep }) => [after, limit, keep],
  text: `
    select task.id
    from graphile_worker._private_tasks as task
    where task.id > $1::integer
      and task.identifier <> all ($3::text[])
      and not exists (select from graphile_worker._private_jobs as job where job.task_id = task.id)
    order by task.id
    limit $2::integer
    for update skip locked`,
});

/** Deletes those of them that still have no job: what was added until they were locked is seen now. */
export const deleteUnusedTasks = statement<{ ids: readonly number[] }, never>({
  name: "delete_unused_tasks",
  patienceMs: shortPatienceMs,
  values: ({ ids }) => [ids],
  text: `
    delete from graphile_worker._private_tasks as task
    where task.id = any ($1::integer[])
      and not exists (select from graphile_worker._private_jobs as job where job.task_id = task.id)`,
});
