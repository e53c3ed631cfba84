import type { Database } from "../../db/database.ts";
import { announceQueues } from "../../db/statements/settle.ts";
import type { Job } from "../../job.ts";
import { DelayedNotice } from "./delayed-notice.ts";

/**
 * Notifies other pools of queues that we released and did not claim again: our slots may be full, or the next job may belong to a
 * task that we lack, and other pools would not scan before their next poll.
 */
export class QueueNotices {
  readonly #queueIds = new Set<number>();
  readonly #notice: DelayedNotice;

  constructor(database: Database, useNodeTime: boolean) {
    this.#notice = new DelayedNotice(() => {
      if (this.#queueIds.size === 0) return undefined;
      const queueIds = [...this.#queueIds];
      this.#queueIds.clear();
      return database.run(announceQueues, { queueIds, clock: useNodeTime ? new Date() : null });
    });
  }

  released(queueId: number): void {
    this.#queueIds.add(queueId);
    this.#notice.plan();
  }

  claimed(jobs: readonly Job[]): void {
    if (this.#queueIds.size === 0) return;
    for (const { job_queue_id } of jobs) if (job_queue_id !== null) this.#queueIds.delete(job_queue_id);
  }

  /** Sends what is left, at once. */
  close(): Promise<void> {
    return this.#notice.close();
  }
}
