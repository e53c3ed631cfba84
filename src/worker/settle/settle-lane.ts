import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import { setImmediate } from "../../util/timers.ts";
import type { Outcome } from "../run/outcome.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { EndedJob } from "./ended-job.ts";
import { heldBackoff } from "./sure-writes.ts";
import type { LaneJobs } from "./unwritten.ts";

/** At most this many outcomes go out in one statement. */
const maxBatch = 2_000;

/**
 * Writes outcomes one statement after the other: what gathers while one is under way goes out with the next, so batches grow only
 * under load and nothing waits for a timer (unless a delay was asked for). What another transaction holds is written on its own, as soon
 * as that lets go, and delays nothing else.
 */
export class SettleLane<Ended extends Outcome> {
  readonly #jobs: LaneJobs<Ended>;
  readonly #writer: BatchWriter<Ended>;
  readonly #delayMs: number;
  readonly #onFlushed: () => void;
  #loop: Promise<void> | undefined;
  #heldLoop: Promise<void> | undefined;

  /** `onFlushed` is called when what was written together no longer counts as pending. */
  constructor(jobs: LaneJobs<Ended>, writer: BatchWriter<Ended>, delayMs: number, onFlushed: () => void) {
    this.#jobs = jobs;
    this.#writer = writer;
    this.#delayMs = delayMs;
    this.#onFlushed = onFlushed;
  }

  add(ended: EndedJob<Ended>): void {
    this.#jobs.waiting.push(ended);
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined;
    });
  }

  /** Resolves when everything that was added is written or given up. */
  async idle(): Promise<void> {
    while (this.#loop ?? this.#heldLoop) await (this.#loop ?? this.#heldLoop);
  }

  async #run(): Promise<void> {
    const delayMs = this.#delayMs;
    const jobs = this.#jobs;
    // Everything that ends in this turn of the event loop goes out together.
    if (delayMs > 0) await sleep(delayMs);
    else await new Promise((resolve) => setImmediate(resolve));
    while (jobs.waiting.length > 0) {
      jobs.inFlight = this.#nextBatch();
      this.#hold(await this.#writer.write(jobs.inFlight, true));
      jobs.inFlight = [];
      this.#onFlushed();
      if (delayMs > 0 && jobs.waiting.length > 0) await sleep(delayMs);
    }
  }

  #hold(ended: readonly EndedJob<Ended>[]): void {
    if (ended.length === 0) return;
    this.#jobs.held = [...this.#jobs.held, ...ended];
    this.#heldLoop ??= this.#writeHeld().finally(() => {
      this.#heldLoop = undefined;
    });
  }

  async #writeHeld(): Promise<void> {
    const jobs = this.#jobs;
    const writer = this.#writer;
    const { giveUp } = writer;
    for (let attempt = 0; jobs.held.length > 0; attempt++) {
      await sleep(backoffMs(heldBackoff, attempt), giveUp);
      const trying = jobs.held.filter(({ poolId }) => poolId === jobs.held[0]?.poolId).slice(0, maxBatch);
      // Their queues were released the first time.
      const stillHeld = new Set(await writer.write(trying, false));
      const isOff = new Set(trying.filter((ended) => !stillHeld.has(ended)));
      jobs.held = jobs.held.filter((ended) => !isOff.has(ended));
      if (isOff.size > 0) attempt = 0;
      if (!giveUp.aborted) continue;
      writer.giveUpOn(jobs.held, giveUp.reason);
      jobs.held = [];
    }
  }

  /** A statement speaks for one pool id: jobs from before a change of identity go out on their own. */
  #nextBatch(): EndedJob<Ended>[] {
    const { waiting } = this.#jobs;
    const poolId = waiting[0]?.poolId;
    let count = 0;
    while (count < maxBatch && count < waiting.length && waiting[count]?.poolId === poolId) count++;
    return waiting.splice(0, count);
  }
}
