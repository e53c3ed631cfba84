import type { Database } from "../../db/database.ts";
import type { UnwrittenRow } from "../../db/statements/settle.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";
import { type Outcome, outcomeAs, type WrittenAs } from "../run/outcome.ts";
import { announceUnwritten } from "./announce.ts";
import { type ConcludeOptions, conclude } from "./conclude.ts";
import type { EndedJob } from "./ended-job.ts";
import type { LaneSpec } from "./lanes.ts";
import type { QueueReleases } from "./queue-releases.ts";
import { type Lend, settlingAndClaiming } from "./settle-and-claim.ts";
import type { SureWrites } from "./sure-writes.ts";
import type { Unwritten } from "./unwritten.ts";

export interface BatchWriterOptions extends ConcludeOptions {
  readonly database: Database;
  readonly workerPool: WorkerPool;
  readonly writes: SureWrites;
  readonly releases: QueueReleases;
  readonly lend: Lend;
  readonly unwritten: Unwritten;
}

/** Writes the outcomes of one lane with its statement, and the queues that are released with them; then each job is concluded. */
export class BatchWriter<Ended extends Outcome> {
  readonly #spec: LaneSpec<Ended>;
  readonly #options: BatchWriterOptions;

  constructor(spec: LaneSpec<Ended>, options: BatchWriterOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  get delayMs(): number {
    return this.#spec.delayMs;
  }

  /** Aborts when what is held by other transactions is no longer waited for. */
  get giveUp(): AbortSignal {
    return this.#options.writes.signal;
  }

  /** Tries until it is through. The queues of these jobs go with them the first time. Resolves to what was not written as it was asked. */
  async write(batch: readonly EndedJob<Ended>[], isFirst: boolean): Promise<UnwrittenRow | undefined> {
    const { database, emit, writes, releases, workerPool, lend, unwritten } = this.#options;
    const startedAt = monotonicMs();
    const queueIds = isFirst ? releases.releasable(batch) : null;
    let tries = 0;
    const row = await writes.write(async (mayBeDone) => {
      const release = { queueIds, endedIds: queueIds ? unwritten.endedIn(queueIds, batch) : [] };
      // What cannot be written at first is written alone.
      const run = tries++ === 0 ? settlingAndClaiming(database, batch, lend) : database.run;
      const row = await this.#spec.write(batch, release, mayBeDone, run);
      // A job that is not ours any more after a try that may have gone through was most likely settled by that.
      return mayBeDone && row ? { ...row, lost: null } : row;
    });
    for (const ended of batch) ended.isToRelease = false;
    if (emit.heard("settle:complete")) {
      const count = batch.length - (row?.held?.length ?? 0);
      emit("settle:complete", { workerPool, count, durationMs: monotonicMs() - startedAt });
    }
    releases.released(queueIds, row?.held_queues, batch[0]!.poolId);
    return row;
  }

  written(ended: EndedJob<Ended>, as: WrittenAs): void {
    conclude(this.#options, ended, outcomeAs(ended.outcome, as), as === "lost");
  }

  givenUp(ended: EndedJob<Ended>, error: unknown): void {
    announceUnwritten(this.#options.emit, ended, error);
    ended.onWritten?.(true);
  }

  /** The database keeps refusing. */
  failed(error: unknown): void {
    this.#options.writes.die(error, this.#spec.action);
  }
}
