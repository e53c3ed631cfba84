import type { UnwrittenRow } from "../../db/statements/settle.ts";
import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import { setImmediate } from "../../util/timers.ts";
import type { Outcome, WrittenAs } from "../run/outcome.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { EndedJob } from "./ended-job.ts";

/** At most this many outcomes go out in one statement. */
const maxBatch = 2_000;
/** How often to try again to write what another transaction holds. */
export const heldBackoff = { minMs: 20, maxMs: 1_000, factor: 1.5 };

/**
 * Writes outcomes one statement after the other: what gathers while one is under way goes out with the next, so batches grow only
 * under load and nothing waits for a timer (unless a delay was asked for). What another transaction holds is written on its own, as soon
 * as that lets go, and delays nothing else.
 */
export class SettleLane<Ended extends Outcome> {
  readonly #writer: BatchWriter<Ended>;
  readonly #onFlushed: () => void;
  #waiting: EndedJob<Ended>[] = [];
  #inFlight: readonly EndedJob<Ended>[] = [];
  #held: readonly EndedJob<Ended>[] = [];
  #loop: Promise<void> | undefined;
  #heldLoop: Promise<void> | undefined;

  /** `onFlushed` is called when what was written together no longer counts as pending. */
  constructor(writer: BatchWriter<Ended>, onFlushed: () => void) {
    this.#writer = writer;
    this.#onFlushed = onFlushed;
  }

  /** Jobs that are to be written next; without those that are held, which may take long. */
  get pending(): number {
    return this.#waiting.length + this.#inFlight.length;
  }

  /** What is not written yet. */
  unwritten(): EndedJob<Ended>[] {
    return [...this.#held, ...this.#inFlight, ...this.#waiting];
  }

  add(ended: EndedJob<Ended>): void {
    this.#waiting.push(ended);
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined;
    });
  }

  /** Resolves when everything that was added is written or given up. */
  async idle(): Promise<void> {
    while (this.#loop ?? this.#heldLoop) await (this.#loop ?? this.#heldLoop);
  }

  async #run(): Promise<void> {
    const { delayMs } = this.#writer;
    // Everything that ends in this turn of the event loop goes out together.
    if (delayMs > 0) await sleep(delayMs);
    else await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      this.#inFlight = this.#nextBatch();
      this.#hold(await this.#write(this.#inFlight, true));
      this.#inFlight = [];
      this.#onFlushed();
      if (delayMs > 0 && this.#waiting.length > 0) await sleep(delayMs);
    }
  }

  /** Resolves to the jobs that another transaction holds. */
  async #write(batch: readonly EndedJob<Ended>[], isFirst: boolean): Promise<readonly EndedJob<Ended>[]> {
    const writer = this.#writer;
    try {
      const unwritten = await writer.write(batch, isFirst);
      const held = unwritten?.held;
      const isHeld = ({ jobId }: EndedJob<Ended>): boolean => held?.includes(jobId) ?? false;
      for (const ended of batch) if (!isHeld(ended)) writer.written(ended, writtenAs(ended.jobId, unwritten));
      return held ? batch.filter(isHeld) : [];
    } catch (error) {
      for (const ended of batch) writer.givenUp(ended, error);
      writer.failed(error);
      return [];
    }
  }

  #hold(ended: readonly EndedJob<Ended>[]): void {
    if (ended.length === 0) return;
    this.#held = [...this.#held, ...ended];
    this.#heldLoop ??= this.#writeHeld().finally(() => {
      this.#heldLoop = undefined;
    });
  }

  async #writeHeld(): Promise<void> {
    const writer = this.#writer;
    const { giveUp } = writer;
    for (let attempt = 0; this.#held.length > 0; attempt++) {
      await sleep(backoffMs(heldBackoff, attempt), giveUp);
      const trying = this.#held.filter(({ poolId }) => poolId === this.#held[0]?.poolId).slice(0, maxBatch);
      // Their queues were released the first time.
      const stillHeld = new Set(await this.#write(trying, false));
      const isOff = new Set(trying.filter((ended) => !stillHeld.has(ended)));
      this.#held = this.#held.filter((ended) => !isOff.has(ended));
      if (isOff.size > 0) attempt = 0;
      if (!giveUp.aborted) continue;
      for (const ended of this.#held) writer.givenUp(ended, giveUp.reason);
      this.#held = [];
      writer.failed(giveUp.reason);
    }
  }

  /** A statement speaks for one pool id: jobs from before a change of identity go out on their own. */
  #nextBatch(): EndedJob<Ended>[] {
    const poolId = this.#waiting[0]?.poolId;
    let count = 0;
    while (count < maxBatch && count < this.#waiting.length && this.#waiting[count]?.poolId === poolId) count++;
    return this.#waiting.splice(0, count);
  }
}

function writtenAs(jobId: string, unwritten: UnwrittenRow | undefined): WrittenAs {
  if (unwritten?.cancelled?.includes(jobId)) return "cancelled";
  if (unwritten?.refused?.includes(jobId)) return "failed";
  return unwritten?.lost?.includes(jobId) ? "lost" : "decided";
}
