import { shortPatienceMs, statement } from "../statement.ts";

/** The names of all tasks that jobs were added for. */
export const listTaskNames = statement<Record<string, never>, { readonly identifier: string }>({
  name: "list_task_names",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: "select identifier from graphile_worker._private_tasks",
});
