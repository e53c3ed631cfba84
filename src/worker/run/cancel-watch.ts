import type { Database } from "../../db/database.ts";
import { type CancellationRow, lookAtHeldJobs } from "../../db/statements/control.ts";
import type { Job } from "../../job.ts";
import type { Service } from "../../util/service.ts";
import { clearInterval, setInterval } from "../../util/timers.ts";

export interface CancelWatchOptions {
  readonly database: Database;
  /** Between looks for cancels that no notification told of. */
  readonly pollMs: number;
  /** Notifications arrive. */
  readonly isTold: () => boolean;
  /** Ids of jobs that are held and not cancelled yet. */
  readonly held: () => readonly string[];
  readonly onCancelled: (cancellation: CancellationRow) => void;
  readonly poolId: () => string;
  /** Jobs that run and whose outcome is still to come. */
  readonly running: () => readonly Job[];
  /** A running job is not locked by this pool any more. */
  readonly onLost: (job: Job) => void;
}

/** Beyond this many ids it is simpler to ask. */
const maxHeardEarly = 1_000;

/**
 * Finds out which of a pool's jobs were cancelled, or are no longer the pool's: when a notification says so, and at every poll. While
 * notifications arrive, a poll asks only if a job was there at the poll before, so that a pool whose jobs are short asks nothing.
 */
export class CancelWatch implements Service {
  readonly #options: CancelWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #heldBefore: ReadonlySet<string> = new Set();
  /** Cancelled jobs that are not held: they may be in a claim whose response is under way. */
  readonly #heardEarly = new Set<string>();
  #hasHeardTooMany = false;
  #asking: Promise<void> | undefined;
  #mustAskAgain = false;

  constructor(options: CancelWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.pollEvery(this.#options.pollMs);
  }

  pollEvery(ms: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#poll(), ms);
    this.#timer.unref();
  }

  /** Waits for a question that is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#mustAskAgain = false;
    await this.#asking;
  }

  /** A notification arrived: ids as JSON, or none if there were too many. */
  hear(payload: string | undefined): void {
    let ids: unknown;
    try {
      ids = JSON.parse(payload ?? "");
    } catch {
      return; // anybody may notify
    }
    if (!Array.isArray(ids)) return;
    const held = new Set(this.#options.held());
    const early = ids.map(String).filter((id) => !held.has(id));
    if (held.size > 0 && (ids.length === 0 || early.length < ids.length)) this.ask();
    this.#hasHeardTooMany ||= ids.length === 0 || this.#heardEarly.size + early.length > maxHeardEarly;
    if (this.#hasHeardTooMany) this.#heardEarly.clear();
    else for (const id of early) this.#heardEarly.add(id);
  }

  /** These jobs are held from now on. What was heard before a claim was answered and is not among them is not ours. */
  claimed(jobs: readonly { readonly id: string }[]): void {
    if (!this.#hasHeardTooMany && this.#heardEarly.size === 0) return;
    const isConcerned = this.#hasHeardTooMany || jobs.some(({ id }) => this.#heardEarly.has(id));
    this.#hasHeardTooMany = false;
    this.#heardEarly.clear();
    if (isConcerned && jobs.length > 0) this.ask();
  }

  /** Asks about everything that is held, now. */
  ask(): void {
    this.#mustAskAgain = true;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
  }

  #poll(): void {
    const held = this.#options.held();
    const isLong = held.some((id) => this.#heldBefore.has(id));
    this.#heldBefore = new Set(held);
    if (isLong || (held.length > 0 && !this.#options.isTold())) this.ask();
  }

  async #ask(): Promise<void> {
    while (this.#mustAskAgain) {
      this.#mustAskAgain = false;
      const ids = this.#options.held();
      if (ids.length === 0) return;
      try {
        await this.#look(ids);
      } catch {
        return; // the next poll asks again, and the claimer reports an unreachable database
      }
    }
  }

  async #look(ids: readonly string[]): Promise<void> {
    const { database, poolId, running, onCancelled, onLost } = this.#options;
    const id = poolId();
    const jobById = new Map(running().flatMap((job) => (job.locked_by === id ? [[job.id, job]] : [])));
    for (const row of await database.run(lookAtHeldJobs, { ids, poolId: id, runningIds: [...jobById.keys()] })) {
      if (row.is_lost) onLost(jobById.get(row.job_id)!);
      else onCancelled(row);
    }
  }
}
