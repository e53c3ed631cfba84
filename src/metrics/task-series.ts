import type { JobOutcomeName } from "../events.ts";
import { Histogram } from "./histogram.ts";

/** What is counted of one task. */
export class TaskSeries {
  /** From the moment a job was due to its start. */
  readonly wait = new Histogram();
  readonly run = new Histogram();
  readonly finished: Record<JobOutcomeName | "lost", number> = {
    succeeded: 0,
    failed: 0,
    permanentlyFailed: 0,
    snoozed: 0,
    cancelled: 0,
    lost: 0,
  };
  added = 0;
}

/** Stands for all tasks beyond the first ones. */
const otherTasks = "(other)";

/** Series by task. The number of tasks is bounded: every label value is a series in whatever collects them. */
export class SeriesByTask {
  readonly #byTask = new Map<string, TaskSeries>();
  readonly #maxTasks: number;
  #lastTask: string | undefined;
  #last: TaskSeries | undefined;

  constructor(maxTasks: number) {
    this.#maxTasks = maxTasks;
  }

  of(task: string): TaskSeries {
    // Jobs of one task tend to come in a row.
    if (task === this.#lastTask && this.#last) return this.#last;
    this.#last = this.#byTask.get(task) ?? this.#make(task);
    this.#lastTask = task;
    return this.#last;
  }

  /** The name under which a task is counted. */
  labelOf(task: string): string {
    this.of(task);
    return this.#byTask.has(task) ? task : otherTasks;
  }

  entries(): [string, TaskSeries][] {
    return [...this.#byTask];
  }

  #make(task: string): TaskSeries {
    const name = this.#byTask.size < this.#maxTasks ? task : otherTasks;
    const series = this.#byTask.get(name) ?? new TaskSeries();
    this.#byTask.set(name, series);
    return series;
  }
}
