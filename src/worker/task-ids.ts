import type { Database } from "../db/database.ts";
import { registerTasks } from "../db/statements/register-tasks.ts";

/** What the database calls the tasks that this pool knows. */
export interface TaskIds {
  readonly ids: readonly number[];
  readonly nameById: ReadonlyMap<number, string>;
}

/** Gives every task a row, and learns the ids. */
export async function learnTaskIds(database: Database, identifiers: readonly string[]): Promise<TaskIds> {
  const nameById = new Map<number, string>();
  // A name that another process is just adding is not seen by the first statement, but by the next.
  for (let attempt = 0; nameById.size < identifiers.length && attempt < 10; attempt++) {
    const rows = await database.run(registerTasks, { identifiers });
    for (const { id, identifier } of rows) nameById.set(id, identifier);
  }
  return { ids: [...nameById.keys()], nameById };
}
