import type { Database } from "../../db/database.ts";
import { findTasks, registerTasks, type TaskRow } from "../../db/statements/claim.ts";
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
  /** An application that has not committed yet is adding some of our tasks. */
  #areSomeMissing = false;

  constructor(options: KnownTasksOptions) {
    this.#options = options;
  }

  /** With `isChecked`, the claim they are for checks them itself. */
  ids(isChecked: boolean): Promise<TaskIds> {
    const names = Object.keys(this.#options.tasks);
    if (names.length === 0) return Promise.reject(new NoTasksError());
    const isOld = monotonicMs() - this.#learntAt > (this.#options.maxAgeMs ?? maxAgeMs);
    if (!this.#taskIds || (isOld && !isChecked)) {
      this.#learntAt = monotonicMs();
      this.#learn(this.#taskIds ? this.#refresh(names) : this.#register(names));
    } else if (this.#areSomeMissing) this.#learn(this.#find(names));
    return this.#taskIds!;
  }

  #learn(taskIds: Promise<TaskIds>): void {
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

  async #refresh(names: readonly string[]): Promise<TaskIds> {
    const { database } = this.#options;
    let rows = await database.run(registerTasks, { identifiers: names });
    // Under a stricter isolation level than ours, a name that another process has just added is seen by the next statement only.
    if (rows.length < names.length) rows = await database.run(findTasks, { identifiers: names });
    return this.#known(rows, names);
  }

  async #find(names: readonly string[]): Promise<TaskIds> {
    return this.#known(await this.#options.database.run(findTasks, { identifiers: names }), names);
  }

  #known(rows: readonly TaskRow[], names: readonly string[]): TaskIds {
    this.#areSomeMissing = rows.length < names.length;
    return { ids: rows.map(({ id }) => id), nameById: new Map(rows.map(({ id, identifier }) => [id, identifier])) };
  }
}
