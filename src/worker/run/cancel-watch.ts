import type { Database } from "../../db/database.ts";
import { type CancellationRow, readCancellations } from "../../db/statements/control.ts";
import { clearInterval, setInterval } from "../../util/timers.ts";

export interface CancelWatchOptions {
  readonly database: Database;
  /** Between looks for cancels that no notification told of. */
  readonly pollMs: number;
  /** Ids of jobs that are held and not cancelled yet. */
  readonly held: () => readonly string[];
  readonly onCancelled: (cancellation: CancellationRow) => void;
}

/**
 * Finds out which of a pool's jobs were cancelled: when a notification says so, and at every poll for jobs that were there at the poll
 * before. So a pool whose jobs are short asks nothing.
 */
export class CancelWatch {
  readonly #options: CancelWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #heldBefore: ReadonlySet<string> = new Set();
  #asking: Promise<void> | undefined;
  #mustAskAgain = false;

  constructor(options: CancelWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.#poll(), this.#options.pollMs);
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
    const held = this.#options.held();
    if (held.length > 0 && (ids.length === 0 || ids.some((id) => held.includes(String(id))))) this.ask();
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
    if (isLong) this.ask();
  }

  async #ask(): Promise<void> {
    const { database, held, onCancelled } = this.#options;
    while (this.#mustAskAgain) {
      this.#mustAskAgain = false;
      const ids = held();
      if (ids.length === 0) return;
      try {
        for (const row of await database.run(readCancellations, { ids })) onCancelled(row);
      } catch {
        return; // the next poll asks again, and the claimer reports an unreachable database
      }
    }
  }
}
