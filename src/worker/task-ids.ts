import type { Database } from "../db/database.ts";
import { registerTasks } from "../db/statements/register-tasks.ts";
import type { TaskList } from "../task.ts";
import type { Lifeline } from "./pool-options.ts";

/** What the database calls the tasks that this pool knows. */
export interface TaskIds {
  readonly ids: readonly number[];
  readonly nameById: ReadonlyMap<number, string>;
}

/** There is nothing that this pool could run. */
export class NoTasksError extends Error {
  constructor() {
    super("No runnable tasks!");
  }
}

export interface KnownTasksOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly lifeline?: Lifeline | undefined;
}

/** The ids of a pool's tasks, learnt when they are first asked for and whenever they were forgotten. */
export class KnownTasks {
  readonly #options: KnownTasksOptions;
  #taskIds: Promise<TaskIds> | undefined;

  constructor(options: KnownTasksOptions) {
    this.#options = options;
  }

  ids(): Promise<TaskIds> {
    const names = Object.keys(this.#options.tasks);
    if (names.length === 0) return Promise.reject(new NoTasksError());
    this.#taskIds ??= this.#register(names).catch((error) => {
      this.#taskIds = undefined;
      throw error;
    });
    return this.#taskIds;
  }

  /** The names in the task list may have changed. */
  forget(): void {
    this.#taskIds = undefined;
  }

  async #register(names: readonly string[]): Promise<TaskIds> {
    await this.#options.lifeline?.register(names);
    return learnTaskIds(this.#options.database, names);
  }
}

/** Gives every task a row, and learns the ids. */
async function learnTaskIds(database: Database, identifiers: readonly string[]): Promise<TaskIds> {
  const nameById = new Map<number, string>();
  // A name that another process is just adding is not seen by the first statement, but by the next.
  for (let attempt = 0; nameById.size < identifiers.length && attempt < 10; attempt++) {
    const rows = await database.run(registerTasks, { identifiers });
    for (const { id, identifier } of rows) nameById.set(id, identifier);
  }
  return { ids: [...nameById.keys()], nameById };
}
