import type { Database } from "../../db/database.ts";
import { announceQueues } from "../../db/statements/settle.ts";
import type { Job } from "../../job.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";

/** Long enough for us to take a queue up again ourselves, which is what happens most of the time. */
const restMs = 10;

/**
 * Notifies other pools of queues that we released and did not claim again: our slots may be full, or the next job may belong to a
 * task that we lack, and other pools would not scan before their next poll.
 */
export class HandOver {
  readonly #database: Database;
  readonly #useNodeTime: boolean;
  readonly #queueIds = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> = Promise.resolve();

  constructor(database: Database, useNodeTime: boolean) {
    this.#database = database;
    this.#useNodeTime = useNodeTime;
  }

  released(queueId: number): void {
    this.#queueIds.add(queueId);
    this.#timer ??= setTimeout(() => this.#tell(), restMs);
  }

  claimed(jobs: readonly Job[]): void {
    if (this.#queueIds.size === 0) return;
    for (const { job_queue_id } of jobs) if (job_queue_id !== null) this.#queueIds.delete(job_queue_id);
  }

  /** Tells of what is left, at once. */
  async stop(): Promise<void> {
    this.#tell();
    await this.#telling;
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#queueIds.size === 0) return;
    const queueIds = [...this.#queueIds];
    this.#queueIds.clear();
    const clock = this.#useNodeTime ? new Date() : null;
    const told = this.#database.run(announceQueues, { queueIds, clock }).then(
      () => undefined,
      () => undefined, // polling finds them
    );
    this.#telling = Promise.all([this.#telling, told]).then(() => undefined);
  }
}
