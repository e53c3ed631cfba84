import type { Job } from "../../job.ts";
import type { Unstarted } from "./buffer.ts";

export interface Overlap {
  /** The jobs that may start. */
  readonly clear: readonly Job[];
  /** Jobs that the pool has already, and the queues that nothing else of its own is in. */
  readonly again: Unstarted;
  /** Jobs of queues in which the pool has another job. */
  readonly behind: readonly Job[];
}

/**
 * Finds claimed jobs that would run beside an earlier run of the same job, or of the same named queue, in this process. While a pool's locks
 * last, a claim brings none. But locks are removed by a forced unlock and by the four-hour rule, and a pool that was taken for dead loses
 * them, while its tasks run on.
 */
export class Overlaps {
  readonly #ours: () => readonly Job[];
  /** No job with a higher id was ever claimed: such a job is new, and costs one comparison. */
  #highestId = "";

  /** `ours` are the jobs of earlier claims that run, whoever settles them, or have not started. */
  constructor(ours: () => readonly Job[]) {
    this.#ours = ours;
  }

  find(claimed: readonly Job[]): Overlap | undefined {
    return this.#areNew(claimed) ? undefined : findOverlap(claimed, this.#ours());
  }

  #areNew(claimed: readonly Job[]): boolean {
    const before = this.#highestId;
    let areNew = true;
    for (const { id, job_queue_id } of claimed) {
      if (job_queue_id !== null || !isHigher(id, before)) areNew = false;
      if (isHigher(id, this.#highestId)) this.#highestId = id;
    }
    return areNew;
  }
}

/** Ids are whole numbers without leading zeros. */
function isHigher(id: string, other: string): boolean {
  return id.length === other.length ? id > other : id.length > other.length;
}

function findOverlap(claimed: readonly Job[], ours: readonly Job[]): Overlap | undefined {
  if (ours.length === 0) return undefined;
  const ids = new Set(ours.map(({ id }) => id));
  const queues = new Set(ours.map(({ job_queue_id }) => job_queue_id));
  queues.delete(null);
  const again = claimed.filter(({ id }) => ids.has(id));
  const behind = claimed.filter(({ id, job_queue_id }) => !ids.has(id) && queues.has(job_queue_id));
  if (again.length === 0 && behind.length === 0) return undefined;
  const clear = claimed.filter(({ id, job_queue_id }) => !ids.has(id) && !queues.has(job_queue_id));
  const kept = new Set([...queues, ...clear.map(({ job_queue_id }) => job_queue_id)]);
  const queueIds = new Set(again.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null && !kept.has(id)));
  return { clear, again: { jobs: again, queueIds: [...queueIds] as number[] }, behind };
}
