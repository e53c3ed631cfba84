import type { Database } from "../../db/database.ts";
import { announcePlaces } from "../../db/statements/limits.ts";
import { LateNews } from "./late-news.ts";

/** Tells other pools of places in limits that our jobs have freed and that we did not take again. */
export class PlaceWatch {
  readonly #taskIds = new Set<number>();
  readonly #news: LateNews;
  #places = 0;

  constructor(database: Database, useNodeTime: boolean) {
    this.#news = new LateNews(() => {
      const taskIds = [...this.#taskIds];
      const places = this.#places;
      this.#taskIds.clear();
      this.#places = 0;
      if (places === 0) return undefined;
      return database.run(announcePlaces, { taskIds, clock: useNodeTime ? new Date() : null });
    });
  }

  freed(taskId: number): void {
    this.#taskIds.add(taskId);
    this.#places++;
    this.#news.plan();
  }

  claimed(jobs: number): void {
    this.#places = Math.max(0, this.#places - jobs);
  }

  /** Tells of what is left, at once. */
  stop(): Promise<void> {
    return this.#news.stop();
  }
}
