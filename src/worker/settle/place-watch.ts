import type { Database } from "../../db/database.ts";
import { announcePlaces } from "../../db/statements/limits.ts";
import type { Job } from "../../job.ts";
import { LateNews } from "./late-news.ts";

/** Tells other pools of places in limits that our jobs have freed and that we did not take again. */
export class PlaceWatch {
  /** Freed and not taken again by a job of the same task. */
  readonly #placesByTask = new Map<number, number>();
  readonly #news: LateNews;

  constructor(database: Database, useNodeTime: boolean) {
    this.#news = new LateNews(() => {
      const taskIds = [...this.#placesByTask.keys()];
      this.#placesByTask.clear();
      if (taskIds.length === 0) return undefined;
      return database.run(announcePlaces, { taskIds, clock: useNodeTime ? new Date() : null });
    });
  }

  freed(taskId: number): void {
    this.#placesByTask.set(taskId, (this.#placesByTask.get(taskId) ?? 0) + 1);
    this.#news.plan();
  }

  claimed(jobs: readonly Job[]): void {
    if (this.#placesByTask.size === 0) return;
    for (const { task_id: taskId } of jobs) {
      const places = this.#placesByTask.get(taskId);
      if (places === 1) this.#placesByTask.delete(taskId);
      else if (places) this.#placesByTask.set(taskId, places - 1);
    }
    if (this.#placesByTask.size === 0) this.#news.cancel();
  }

  /** Tells of what is left, at once. */
  close(): Promise<void> {
    return this.#news.close();
  }
}
