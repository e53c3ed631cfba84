import type { Database } from "../../db/database.ts";
import { announcePlaces } from "../../db/statements/limits.ts";
import type { Job } from "../../job.ts";
import { DelayedNotice } from "./delayed-notice.ts";

/** Notifies other pools of places in limits that our jobs have freed and that we did not take again. */
export class PlaceNotices {
  /** Freed and not taken again by a job of the same task. */
  readonly #placesByTask = new Map<number, number>();
  readonly #notice: DelayedNotice;
  #isClosing = false;

  /** `arePlenty` says that a moment ago a claim of ours found many places free: then no pool waits for one. */
  constructor(database: Database, useNodeTime: boolean, arePlenty: () => boolean) {
    this.#notice = new DelayedNotice(() => {
      if (arePlenty() && !this.#isClosing) {
        this.#notice.plan();
        return undefined;
      }
      const taskIds = [...this.#placesByTask.keys()];
      this.#placesByTask.clear();
      if (taskIds.length === 0) return undefined;
      return database.run(announcePlaces, { taskIds, clock: useNodeTime ? new Date() : null });
    });
  }

  freed(taskId: number): void {
    this.#placesByTask.set(taskId, (this.#placesByTask.get(taskId) ?? 0) + 1);
    this.#notice.plan();
  }

  claimed(jobs: readonly Job[]): void {
    if (this.#placesByTask.size === 0) return;
    for (const { task_id: taskId } of jobs) {
      const places = this.#placesByTask.get(taskId);
      if (places === 1) this.#placesByTask.delete(taskId);
      else if (places) this.#placesByTask.set(taskId, places - 1);
    }
    if (this.#placesByTask.size === 0) this.#notice.cancel();
  }

  /** Sends what is left, at once. */
  close(): Promise<void> {
    this.#isClosing = true;
    return this.#notice.close();
  }
}
