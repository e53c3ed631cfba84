import type { Database } from "../db/database.ts";
import { completeJobs } from "../db/statements/complete-jobs.ts";
import { failJobs } from "../db/statements/fail-jobs.ts";
import type { Job } from "../job.ts";
import { sleep } from "../util/sleep.ts";
import { errorText, type Outcome } from "./outcome.ts";

/** An end that waits to be written. */
export interface Ending<Kind extends Outcome["kind"] = Outcome["kind"]> {
  readonly outcome: Extract<Outcome, { kind: Kind }>;
  /** The queue to release with it, if this was the last job held of it. */
  readonly releaseQueue: number | null;
  /** The pool the job was claimed under. */
  readonly poolId: string;
  /** Called when the database knows; `isLost` if the job was no longer ours. */
  readonly onWritten: (isLost: boolean) => void;
  /** Called when it could not be written. */
  readonly onGivenUp: (error: unknown) => void;
}

/** At most this many ends go out in one statement. */
const maxBatch = 2_000;

/** Writes ends in one statement, and gives the ids of those that were no longer ours. */
export type Write<Kind extends Outcome["kind"]> = (
  endings: readonly Ending<Kind>[],
) => Promise<readonly string[] | null>;

/**
 * Writes ends one statement after the other: what gathers while one is under way goes out with the next, so batches grow only
 * under load and nobody waits for a timer (unless a delay was asked for).
 */
export class SettleLane<Kind extends Outcome["kind"]> {
  readonly #write: Write<Kind>;
  readonly #delayMs: number;
  readonly #onFatal: (error: unknown) => void;
  readonly #onFlushed: () => void;
  #waiting: Ending<Kind>[] = [];
  #inFlight: readonly Ending<Kind>[] = [];
  #loop: Promise<void> | undefined;

  /** `onFlushed` is called when what went out together is off the books. */
  constructor(write: Write<Kind>, delayMs: number, onFatal: (error: unknown) => void, onFlushed: () => void) {
    this.#write = write;
    this.#delayMs = delayMs;
    this.#onFatal = onFatal;
    this.#onFlushed = onFlushed;
  }

  get pending(): number {
    return this.#waiting.length + this.#inFlight.length;
  }

  /** The jobs whose ends are not written yet. */
  jobs(): Job[] {
    return [...this.#inFlight, ...this.#waiting].map(({ outcome }) => outcome.job);
  }

  add(ending: Ending<Kind>): void {
    this.#waiting.push(ending);
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined;
    });
  }

  /** Resolves when everything that was added is written or given up. */
  async idle(): Promise<void> {
    while (this.#loop) await this.#loop;
  }

  async #run(): Promise<void> {
    // Everything that ends in this turn of the event loop goes out together.
    if (this.#delayMs > 0) await sleep(this.#delayMs);
    else await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const endings = this.#nextBatch();
      this.#inFlight = endings;
      try {
        const lost = await this.#write(endings);
        for (const ending of endings) ending.onWritten(lost?.includes(ending.outcome.job.id) ?? false);
      } catch (error) {
        for (const ending of endings) ending.onGivenUp(error);
        this.#onFatal(error);
      }
      this.#inFlight = [];
      this.#onFlushed();
      if (this.#delayMs > 0 && this.#waiting.length > 0) await sleep(this.#delayMs);
    }
  }

  /** A statement speaks for one pool id: ends from before a change of identity go out on their own. */
  #nextBatch(): Ending<Kind>[] {
    const poolId = this.#waiting[0]?.poolId;
    let count = 0;
    while (count < maxBatch && this.#waiting[count]?.poolId === poolId && count < this.#waiting.length) count++;
    return this.#waiting.splice(0, count);
  }
}

export function writeCompleted(database: Database): Write<"succeeded"> {
  return async (endings) => {
    const [row] = await database.run(completeJobs, {
      poolId: poolOf(endings),
      jobIds: endings.map(({ outcome }) => outcome.job.id),
      queueIds: queuesOf(endings),
    });
    return row?.lost ?? null;
  };
}

export function writeFailed(database: Database): Write<"failed"> {
  return async (endings) => {
    const [row] = await database.run(failJobs, {
      poolId: poolOf(endings),
      jobIds: endings.map(({ outcome }) => outcome.job.id),
      attempts: endings.map(({ outcome }) => outcome.job.attempts),
      errors: endings.map(({ outcome }) => errorText(outcome.error)),
      payloads: endings.map(({ outcome }) => outcome.remaining ?? null),
      queueIds: queuesOf(endings),
    });
    return row?.lost ?? null;
  };
}

type AnyEnding = Pick<Ending, "poolId" | "releaseQueue">;

function poolOf(endings: readonly AnyEnding[]): string {
  return endings[0]!.poolId;
}

function queuesOf(endings: readonly AnyEnding[]): number[] | null {
  const queueIds: number[] = [];
  for (const { releaseQueue } of endings) if (releaseQueue !== null) queueIds.push(releaseQueue);
  return queueIds.length > 0 ? queueIds : null;
}

/** When a failed job may be tried again, in milliseconds from now: the database's formula. */
export function retryDelayMs(job: Job): number {
  return Math.exp(Math.min(job.attempts, 10)) * 1000;
}
