import { statement } from "../statement.ts";

/** Forgets the names of tasks that have no job, except those to keep. */
export const deleteUnusedTasks = statement<{ keep: readonly string[] }, object>({
  name: "delete_unused_tasks",
  values: ({ keep }) => [keep],
  text: `
    delete from graphile_worker._private_tasks as task
    where not exists (select from graphile_worker._private_jobs as job where job.task_id = task.id)
      and task.identifier <> all ($1::text[])`,
});
