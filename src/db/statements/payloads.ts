import { statement } from "../statement.ts";

export interface WaitingPayloadRow {
  readonly id: string;
  readonly task_identifier: string;
  readonly key: string | null;
  readonly payload: unknown;
}

/** The payloads of jobs that may still run, oldest first, from behind an id on. */
export const listPayloads = statement<{ tasks: readonly string[]; after: string; limit: number }, WaitingPayloadRow>({
  name: "list_payloads",
  values: ({ tasks, after, limit }) => [tasks, after, limit],
  text: `
    select job.id, task.identifier as task_identifier, job.key, job.payload
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.id > $2::bigint
      and job.attempts < job.max_attempts
      and task.identifier = any ($1::text[])
    order by job.id
    limit $3`,
});

export interface UncheckedTaskRow {
  readonly task_identifier: string;
  readonly jobs: number;
}

/** How many jobs that may still run are of other tasks than these, by task. */
export const countOtherTasks = statement<{ tasks: readonly string[] }, UncheckedTaskRow>({
  name: "count_other_tasks",
  values: ({ tasks }) => [tasks],
  text: `
    select task.identifier as task_identifier, count(*)::float8 as jobs
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.attempts < job.max_attempts
      and not task.identifier = any ($1::text[])
    group by task.identifier
    order by task.identifier`,
});
