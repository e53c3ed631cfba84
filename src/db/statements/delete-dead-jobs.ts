import { statement } from "../statement.ts";

/** Deletes jobs whose attempts are used up. */
export const deleteDeadJobs = statement<object, object>({
  name: "delete_dead_jobs",
  values: () => [],
  text: `
    delete from graphile_worker._private_jobs
    where attempts >= max_attempts
      and locked_at is null`,
});
