import type { Database } from "../db/database.ts";
import { type AdoptParams, adoptSuspect } from "../db/statements/sweep.ts";
import type { EventHandlers } from "../emit.ts";
import type { Job } from "../job.ts";
import { hideTraces } from "../trace-context.ts";
import { clearTimeout, monotonicMs, setTimeout } from "../util/timers.ts";

export interface AdoptedJob {
  readonly job: Job;
  /** Its payload is large, and was left out. */
  readonly isUnread: boolean;
}

/**
 * Adopts jobs that were running when a worker died, one at a time: while one is on probation, no other runs in this process, so
 * if the process dies it is known which of them was running.
 */
export class Suspects {
  readonly #database: Database;
  readonly #onReady: () => void;
  #adoptAt = Number.POSITIVE_INFINITY;
  #watched: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(database: Database, onReady: () => void) {
    this.#database = database;
    this.#onReady = onReady;
  }

  /** One may be adopted now. */
  get areWaiting(): boolean {
    return this.#watched === undefined && monotonicMs() >= this.#adoptAt;
  }

  /** Frees the place of one whose run is over. */
  get handlers(): EventHandlers {
    const end = ({ job }: { readonly job: Job }): void => {
      if (job.id === this.#watched) this.#acquit();
    };
    return {
      "job:success": end,
      "job:error": end,
      "job:snoozed": end,
      "job:cancelled": end,
      "job:interrupted": end,
      "job:lost": end,
    };
  }

  /** The next one may be adopted in so many milliseconds; Infinity if there is none. */
  expect(inMs: number): void {
    this.#adoptAt = monotonicMs() + inMs;
    if (this.areWaiting) this.#onReady();
  }

  async adopt(params: AdoptParams, nameById: ReadonlyMap<number, string>): Promise<AdoptedJob | null> {
    const [row] = await this.#database.run(adoptSuspect, params);
    if (!row) {
      this.#adoptAt = Number.POSITIVE_INFINITY;
      return null;
    }
    const { probation_ms: probationMs, is_large: isUnread, ...job } = row;
    this.#watched = job.id;
    this.#timer = setTimeout(() => this.#acquit(), probationMs);
    this.#timer.unref();
    return { job: hideTraces({ ...job, task_identifier: nameById.get(job.task_id)! }), isUnread };
  }

  #acquit(): void {
    clearTimeout(this.#timer);
    this.#watched = undefined;
    if (this.areWaiting) this.#onReady();
  }
}
