import type { Database } from "../../db/database.ts";
import { isInDoubt } from "../../db/sqlstate.ts";
import { returnStrays } from "../../db/statements/settle.ts";
import type { Job } from "../../job.ts";
import { monotonicMs } from "../../util/timers.ts";

/** What was under way when a connection broke may still be done: search soon, and again and again for a while. */
const searchesMs = [100, 1_000, 5_000, 60_000];

export interface StraysOptions {
  readonly database: Database;
  readonly poolId: () => string;
  /** Everything the pool holds of the database's jobs: waiting, running, or ended and not yet written. */
  readonly held: () => readonly Job[];
  /** Called when a search begins; what it gives is called when everything that was not held is back in line. */
  readonly onSearch: () => () => void;
}

/**
 * Returns what the database has locked for a pool that does not know of it. When the response to a claim is lost, the jobs are
 * locked and do not run; so after such a loss the two are compared. Never while a claim is under way.
 */
export class Strays {
  readonly #options: StraysOptions;
  #searchesAt: number[] = [];

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** When to search next; Infinity if there is no reason to. */
  get searchAt(): number {
    return this.#searchesAt[0] ?? Infinity;
  }

  /** Notes an error after which the database may have done what we asked, unheard. */
  suspect(error: unknown): void {
    if (!isInDoubt(error)) return;
    this.#plan();
  }

  /** Notes that jobs are locked for us which we could not read. */
  expect(): void {
    this.#plan();
  }

  async search(): Promise<void> {
    const { database, poolId, held, onSearch } = this.#options;
    const jobs = held();
    const onFound = onSearch();
    try {
      const [row] = await database.run(returnStrays, {
        poolId: poolId(),
        heldJobIds: jobs.map(({ id }) => id),
        heldQueueIds: [...new Set(jobs.map((job) => job.job_queue_id).filter((id) => id !== null))],
      });
      if (row?.held || row?.held_queues) return this.#plan(); // an application holds them at this moment
    } catch (error) {
      this.#plan();
      throw error;
    }
    this.#searchesAt.shift();
    onFound();
  }

  #plan(): void {
    const now = monotonicMs();
    this.#searchesAt = searchesMs.map((ms) => now + ms);
  }
}
