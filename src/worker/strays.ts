import type { Database } from "../db/database.ts";
import { isInDoubt } from "../db/sqlstate.ts";
import { returnStrays } from "../db/statements/return-strays.ts";
import type { Job } from "../job.ts";

/** What was under way when a connection broke may still be done: look soon, and again and again for a while. */
const looksMs = [100, 1_000, 5_000, 60_000];

export interface StraysOptions {
  readonly database: Database;
  readonly poolId: () => string;
  /** Everything the pool holds of the database's jobs: waiting, running, or ended and not yet written. */
  readonly held: () => readonly Job[];
}

/**
 * Gives back what the database keeps for a pool that does not know of it. When the answer to a claim is lost on its way, the
 * jobs are locked and nobody runs them; so after such a loss the two are compared. Never while a claim is under way.
 */
export class Strays {
  readonly #options: StraysOptions;
  #looksAt: number[] = [];

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** When to look next; Infinity if there is no reason to. */
  get lookAt(): number {
    return this.#looksAt[0] ?? Infinity;
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

  async look(): Promise<void> {
    const { database, poolId, held } = this.#options;
    const jobs = held();
    try {
      await database.run(returnStrays, {
        poolId: poolId(),
        heldJobIds: jobs.map(({ id }) => id),
        heldQueueIds: [...new Set(jobs.map((job) => job.job_queue_id).filter((id) => id !== null))],
      });
    } catch (error) {
      this.#plan();
      throw error;
    }
    this.#looksAt.shift();
  }

  #plan(): void {
    const now = Date.now();
    this.#looksAt = looksMs.map((ms) => now + ms);
  }
}
