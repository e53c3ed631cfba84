import type { Database } from "../../db/database.ts";
import { registerTasks } from "../../db/statements/claim.ts";
import { ConfigError } from "../../errors.ts";
import type { TaskList } from "../../task.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { Lifeline } from "../lifeline.ts";

/** What the database calls the tasks that this pool knows. */
export interface TaskIds {
  readonly ids: readonly number[];
  readonly nameById: ReadonlyMap<number, string>;
}

/** There is nothing that this pool could run. */
export class NoTasksError extends ConfigError {
  constructor() {
    super("No runnable tasks! Put a file into the task folder, or a function into 'taskList'.");
  }
}

export interface KnownTasksOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly lifeline?: Lifeline | undefined;
  readonly maxAgeMs?: number | undefined;
}

/** How old the ids may become: a clean-up may have deleted a task's row, and the next job makes a new one. */
const maxAgeMs = 10_000;

/** The ids of a pool's tasks, learnt when they are first asked for, whenever they were forgotten, and now and then. */
export class KnownTasks {
  readonly #options: KnownTasksOptions;
  #taskIds: Promise<TaskIds> | undefined;
  #learntAt = 0;

  constructor(options: KnownTasksOptions) {
    this.#options = options;
  }

  /** With `isChecked`, the claim they are for checks them itself. */
  ids(isChecked: boolean): Promise<TaskIds> {
    const names = Object.keys(this.#options.tasks);
    if (names.length === 0) return Promise.reject(new NoTasksError());
    const isOld = monotonicMs() - this.#learntAt > (this.#options.maxAgeMs ?? maxAgeMs);
    if (!this.#taskIds || (isOld && !isChecked))
      this.#learn(this.#taskIds ? this.#refresh(names) : this.#register(names));
    return this.#taskIds!;
  }

  #learn(taskIds: Promise<TaskIds>): void {
    this.#learntAt = monotonicMs();
    this.#taskIds = taskIds;
    taskIds.catch(() => {
      if (this.#taskIds === taskIds) this.#taskIds = undefined;
    });
  }

  /** The ids are still good. */
  confirm(): void {
    this.#learntAt = monotonicMs();
  }

  /** The names in the task list may have changed. */
  forget(): void {
    this.#taskIds = undefined;
  }

  async #register(names: readonly string[]): Promise<TaskIds> {
    await this.#options.lifeline?.register(names);
    return this.#refresh(names);
  }

  #refresh(names: readonly string[]): Promise<TaskIds> {
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
