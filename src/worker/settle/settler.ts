import type { Database } from "../../db/database.ts";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { KeepRules } from "../../kept-history.ts";
import { monotonicMs, queueMicrotask } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";
import { type Outcome, outcomeAs } from "../run/outcome.ts";
import { announceEnd, announceUnwritten, announceWritten } from "./announce.ts";
import type { EndedJob } from "./ended-job.ts";
import { type LaneDelays, type LaneName, type LaneSpec, laneByKind, makeLaneSpecs, type OutcomeIn } from "./lanes.ts";
import type { QueueReleases } from "./queue-releases.ts";
import { type Lend, settlingAndClaiming } from "./settle-and-claim.ts";
import { SettleLane } from "./settle-lane.ts";
import type { SureWrites } from "./sure-writes.ts";

export interface SettlerOptions extends LaneDelays {
  readonly database: Database;
  readonly emit: Emit;
  readonly workerPool: WorkerPool;
  readonly writes: SureWrites;
  readonly releases: QueueReleases;
  readonly keepRules: KeepRules;
  readonly lend: Lend;
  /** Fewer outcomes are waiting to be written than before. */
  readonly onFlushed: () => void;
  /** The outcome of a job that a slot ran is written. */
  readonly onSettled: (outcome: Outcome) => void;
}

/** From how a job ended to its written row: announces it, writes it in its lane, and announces that it is written. */
export class Settler {
  readonly #options: SettlerOptions;
  readonly #lanes: { readonly [Name in LaneName]: SettleLane<OutcomeIn<Name>> };
  readonly #all: readonly Pick<SettleLane<Outcome>, "pending" | "unwritten" | "idle">[];

  constructor(options: SettlerOptions) {
    this.#options = options;
    const { completing, failing, ruling } = makeLaneSpecs(options.database, options, options.keepRules);
    this.#lanes = {
      completing: this.#makeLane(completing),
      failing: this.#makeLane(failing),
      ruling: this.#makeLane(ruling),
    };
    this.#all = Object.values(this.#lanes);
  }

  /** Jobs whose outcomes are to be written next. */
  get pending(): number {
    let pending = 0;
    for (const lane of this.#all) pending += lane.pending;
    return pending;
  }

  /** Jobs whose outcome is not written yet. */
  jobs(): Job[] {
    return this.#unwritten.map(({ outcome }) => outcome.job);
  }

  /** Those of them that are of these queues, and do not release them with a statement other than the one for `batch`. */
  endedIn(queueIds: readonly number[], batch: readonly EndedJob[] = []): string[] {
    const queues = new Set<number | null>(queueIds);
    const own = new Set(batch);
    return this.#unwritten
      .filter((ended) => queues.has(ended.outcome.job.job_queue_id) && (!ended.isToRelease || own.has(ended)))
      .map(({ jobId }) => jobId);
  }

  get #unwritten(): EndedJob[] {
    return this.#all.flatMap((lane) => lane.unwritten());
  }

  settle(ended: EndedJob): void {
    announceEnd(this.#options.emit, ended);
    if (ended.known) {
      queueMicrotask(() => this.#announceKnown(ended));
      return;
    }
    (this.#lanes[laneByKind[ended.outcome.kind]] as SettleLane<Outcome>).add(ended);
  }

  /** Resolves when all outcomes so far are written or given up. */
  async idle(): Promise<void> {
    await Promise.all(this.#all.map((lane) => lane.idle()));
  }

  /** Nothing is to be written, except that its queue may still be locked for us. */
  #announceKnown(ended: EndedJob): void {
    const { emit, releases, onSettled } = this.#options;
    const isLost = ended.known === "lost";
    if (ended.releaseQueue !== null) releases.release(ended.releaseQueue, ended.poolId);
    announceWritten(emit, ended, ended.outcome, isLost);
    ended.onWritten?.(isLost);
    if (ended.worker) onSettled(ended.outcome);
  }

  #makeLane<Ended extends Outcome>({ write, action, delayMs }: LaneSpec<Ended>): SettleLane<Ended> {
    const { database, emit, writes, releases, workerPool, lend, onFlushed, onSettled } = this.#options;
    return new SettleLane<Ended>({
      delayMs,
      onFlushed,
      giveUp: writes.signal,
      write: async (batch, isFirst) => {
        const startedAt = monotonicMs();
        const queueIds = isFirst ? releases.releasable(batch) : null;
        // What cannot be written at first is written alone.
        let run = settlingAndClaiming(database, batch, lend);
        const row = await writes.write(async (mayBeDone) => {
          const release = { queueIds, endedIds: queueIds ? this.endedIn(queueIds, batch) : [] };
          const settle = run;
          run = database.run;
          const unwritten = await write(batch, release, mayBeDone, settle);
          // A job that is not ours any more after a try that may have gone through was most likely settled by that.
          return mayBeDone && unwritten ? { ...unwritten, lost: null } : unwritten;
        });
        for (const ended of batch) ended.isToRelease = false;
        if (emit.heard("settle:complete")) {
          const count = batch.length - (row?.held?.length ?? 0);
          emit("settle:complete", { workerPool, count, durationMs: monotonicMs() - startedAt });
        }
        releases.released(queueIds, row?.held_queues, batch[0]!.poolId);
        return row ?? { lost: null, held: null };
      },
      onWritten: (ended, as) => {
        const outcome = outcomeAs(ended.outcome, as);
        announceWritten(emit, ended, outcome, as === "lost");
        ended.onWritten?.(as === "lost");
        if (ended.worker) onSettled(outcome);
      },
      onGivenUp: (ended, error) => {
        announceUnwritten(emit, ended, error);
        ended.onWritten?.(true);
      },
      onFatal: (error) => writes.die(error, action),
    });
  }
}
