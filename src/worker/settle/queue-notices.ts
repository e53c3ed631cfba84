import type { Database } from "../../db/database.ts";
import { announceQueues } from "../../db/statements/settle.ts";
import type { Job } from "../../job.ts";
import { LateNews } from "./late-news.ts";

/**
 * Notifies other pools of queues that we released and did not claim again: our slots may be full, or the next job may belong to a
 * task that we lack, and other pools would not scan before their next poll.
 */
export class HandOver {
  readonly #queueIds = new Set<number>();
  readonly #news: LateNews;

  constructor(database: Database, useNodeTime: boolean) {
    this.#news = new LateNews(() => {
      if (this.#queueIds.size === 0) return undefined;
      const queueIds = [...this.#queueIds];
      this.#queueIds.clear();
      return database.run(announceQueues, { queueIds, clock: useNodeTime ? new Date() : null });
    });
  }

  released(queueId: number): void {
    this.#queueIds.add(queueId);
    this.#news.plan();
  }

  claimed(jobs: readonly Job[]): void {
    if (this.#queueIds.size === 0) return;
    for (const { job_queue_id } of jobs) if (job_queue_id !== null) this.#queueIds.delete(job_queue_id);
  }

  /** Tells of what is left, at once. */
  close(): Promise<void> {
    return this.#news.close();
  }
}
