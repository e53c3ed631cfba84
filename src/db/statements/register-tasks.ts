import { shortPatienceMs, statement } from "../statement.ts";

export interface TaskRow {
  readonly id: number;
  readonly identifier: string;
}

/** Makes sure that the tasks have ids, and gives them. Uses no identity values for tasks that are there. */
export const registerTasks = statement<{ identifiers: readonly string[] }, TaskRow>({
  name: "register_tasks",
  patienceMs: shortPatienceMs,
  values: ({ identifiers }) => [identifiers],
  text: `
    with known as (
      select id, identifier from graphile_worker._private_tasks where identifier = any ($1::text[])
    ), added as (
      insert into graphile_worker._private_tasks (identifier)
      select name from unnest($1::text[]) as name
      where not exists (select from known where known.identifier = name)
      order by name
      on conflict do nothing
      returning id, identifier
    )
    select id, identifier from known
    union all
    select id, identifier from added`,
});
