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
import { type Lend, settleAndClaim } from "./settle-and-claim.ts";
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

/** Writes the outcomes of one lane with its statement, and the queues that are released with them; then concludes each job. */
export class BatchWriter<Ended extends Outcome> {
  readonly #spec: LaneSpec<Ended>;
  readonly #options: BatchWriterOptions;

  constructor(spec: LaneSpec<Ended>, options: BatchWriterOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  /** Aborts when what is held by other transactions is no longer waited for. */
  get giveUp(): AbortSignal {
    return this.#options.writes.signal;
  }

  /** Never rejects; resolves to the jobs that another transaction holds. */
  async write(batch: readonly EndedJob<Ended>[], isFirst: boolean): Promise<readonly EndedJob<Ended>[]> {
    const { emit, workerPool } = this.#options;
    const startedAt = monotonicMs();
    try {
      const row = await this.#send(batch, isFirst);
      const held = row?.held;
      if (emit.heard("settle:complete")) {
        const count = batch.length - (held?.length ?? 0);
        emit("settle:complete", { workerPool, count, durationMs: monotonicMs() - startedAt });
      }
      const isHeld = ({ jobId }: EndedJob<Ended>): boolean => held?.includes(jobId) ?? false;
      for (const ended of batch) if (!isHeld(ended)) this.#conclude(ended, row);
      return held ? batch.filter(isHeld) : [];
    } catch (error) {
      this.giveUpOn(batch, error);
      return [];
    }
  }

  /** These stay unwritten: the database keeps refusing, or the pool has to end. */
  giveUpOn(batch: readonly EndedJob<Ended>[], error: unknown): void {
    for (const ended of batch) {
      announceUnwritten(this.#options.emit, ended, error);
      ended.onWritten?.(true);
    }
    this.#options.writes.die(error, this.#spec.action);
  }

  /** Tries until it is through. The queues of these jobs go with them the first time. Resolves to what was not written as it was asked. */
  async #send(batch: readonly EndedJob<Ended>[], isFirst: boolean): Promise<UnwrittenRow | undefined> {
    const { database, writes, releases, unwritten, lend } = this.#options;
    const queueIds = isFirst ? releases.releasable(batch) : null;
    const tries = writes.begin();
    let row: UnwrittenRow | undefined;
    for (;;) {
      const { failures, mayBeDone } = tries;
      try {
        const release = { queueIds, endedIds: queueIds ? unwritten.endedIn(queueIds, batch) : [] };
        const settling = this.#spec.settle(batch, release, mayBeDone);
        const { first, opening, statement, params } = settling;
        if (first) await database.run(first.statement, first.params);
        if (opening) await opening;
        // What cannot be written at first is written alone.
        const claim = failures === 0 ? lend(batch) : undefined;
        [row] = await (claim ? settleAndClaim(database, settling, batch, claim) : database.run(statement, params));
        break;
      } catch (error) {
        await writes.failed(tries, error);
      }
    }
    writes.succeeded(tries);
    for (const ended of batch) ended.isToRelease = false;
    releases.released(queueIds, row?.held_queues, batch[0]!.poolId);
    // A job that is not ours any more after a try that may have gone through was most likely settled by that.
    return tries.mayBeDone && row ? { ...row, lost: null } : row;
  }

  #conclude(ended: EndedJob<Ended>, row: UnwrittenRow | undefined): void {
    const as = writtenAs(ended.jobId, row);
    conclude(this.#options, ended, outcomeAs(ended.outcome, as), as === "lost");
  }
}

function writtenAs(jobId: string, unwritten: UnwrittenRow | undefined): WrittenAs {
  if (unwritten?.cancelled?.includes(jobId)) return "cancelled";
  if (unwritten?.refused?.includes(jobId)) return "failed";
  return unwritten?.lost?.includes(jobId) ? "lost" : "decided";
}
