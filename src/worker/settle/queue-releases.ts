import type { Database } from "../../db/database.ts";
import { completeJobs } from "../../db/statements/settle.ts";
import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import type { EndedJob } from "./ended-job.ts";
import { heldBackoff, type SureWrites } from "./sure-writes.ts";
import type { Unwritten } from "./unwritten.ts";

export interface QueueReleasesOptions {
  readonly database: Database;
  readonly writes: SureWrites;
  /** Jobs of this queue are on their way back into it. */
  readonly isReturningTo: (queueId: number) => boolean;
  readonly unwritten: Pick<Unwritten, "endedIn">;
  /** A named queue is free for its next job. */
  readonly onReleased: (queueId: number) => void;
}

/**
 * Lets go of named queues, as a rule with the statement that settles their last job. A queue with jobs that are being returned is
 * released after those: released before, it would let later jobs overtake them.
 */
export class QueueReleases {
  readonly #options: QueueReleasesOptions;
  /** Queues that are to be released when their returned jobs are back in line, with the pool id that holds them. */
  readonly #deferred = new Map<number, string>();

  #underWay = 0;

  constructor(options: QueueReleasesOptions) {
    this.#options = options;
  }

  /** Queues that we are done with are still locked: their next jobs can be claimed soon. */
  get isReleasing(): boolean {
    return this.#deferred.size > 0 || this.#underWay > 0;
  }

  /** The queues that may be released with these jobs; null for none. The others follow. */
  releasable(ended: readonly EndedJob[]): number[] | null {
    const queueIds: number[] = [];
    for (const each of ended) {
      const { releaseQueue, poolId } = each;
      if (releaseQueue === null) continue;
      if (this.#options.isReturningTo(releaseQueue)) {
        this.#deferred.set(releaseQueue, poolId);
        each.isToRelease = false;
      } else queueIds.push(releaseQueue);
    }
    return queueIds.length > 0 ? queueIds : null;
  }

  /** Those were released with a settle, except those whose rows another transaction holds. */
  released(queueIds: readonly number[] | null, heldQueues: readonly number[] | null | undefined, poolId: string): void {
    if (!queueIds) return;
    for (const queueId of queueIds) if (!heldQueues?.includes(queueId)) this.#options.onReleased(queueId);
    if (heldQueues) this.#options.writes.track(this.#release(heldQueues, poolId));
  }

  /** Releases a queue on its own; after its returned jobs, if there are any. */
  release(queueId: number, poolId: string): void {
    this.#deferred.set(queueId, poolId);
    this.releaseDeferred();
  }

  /** Jobs are back in line, so queues that waited for them may go. */
  releaseDeferred(): void {
    const { isReturningTo, writes } = this.#options;
    for (const [queueId, poolId] of this.#deferred) {
      if (isReturningTo(queueId)) continue;
      this.#deferred.delete(queueId);
      writes.track(this.#release([queueId], poolId));
    }
  }

  /** Releases queues on their own, for as long as another transaction holds their rows. */
  async #release(queueIds: readonly number[], poolId: string): Promise<void> {
    const { database, writes, unwritten, onReleased } = this.#options;
    const { signal } = writes;
    this.#underWay++;
    try {
      let held: readonly number[] = queueIds;
      for (let attempt = 0; held.length > 0 && !signal.aborted; attempt++) {
        if (attempt > 0) await sleep(backoffMs(heldBackoff, attempt), signal);
        const queues = held;
        const [row] = await writes.write(() =>
          database.run(completeJobs, { poolId, jobIds: [], queueIds: queues, endedIds: unwritten.endedIn(queues) }),
        );
        const stillHeld = row?.held_queues ?? [];
        for (const queueId of held) if (!stillHeld.includes(queueId)) onReleased(queueId);
        held = stillHeld;
      }
    } catch (error) {
      writes.die(error, "releaseQueue");
    } finally {
      this.#underWay--;
    }
  }
}
