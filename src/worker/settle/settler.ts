import type { Job } from "../../job.ts";
import type { KeepRules } from "../../kept-history.ts";
import { queueMicrotask } from "../../util/timers.ts";
import type { Outcome } from "../run/outcome.ts";
import { announceEnd } from "./announce.ts";
import { BatchWriter, type BatchWriterOptions } from "./batch-writer.ts";
import { conclude } from "./conclude.ts";
import type { EndedJob } from "./ended-job.ts";
import { type LaneDelays, type LaneName, type LaneSpec, laneByKind, makeLaneSpecs, type OutcomeIn } from "./lanes.ts";
import { SettleLane } from "./settle-lane.ts";

export interface SettlerOptions extends LaneDelays, Omit<BatchWriterOptions, "endedIn"> {
  readonly keepRules: KeepRules;
  /** Fewer outcomes are waiting to be written than before. */
  readonly onFlushed: () => void;
}

/** Takes how a job ended: announces it, and puts it into the lane that writes it. */
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
      queueMicrotask(() => this.#concludeKnown(ended));
      return;
    }
    (this.#lanes[laneByKind[ended.outcome.kind]] as SettleLane<Outcome>).add(ended);
  }

  /** Resolves when all outcomes so far are written or given up. */
  async idle(): Promise<void> {
    await Promise.all(this.#all.map((lane) => lane.idle()));
  }

  /** Nothing is to be written, except that its queue may still be locked for us. */
  #concludeKnown(ended: EndedJob): void {
    if (ended.releaseQueue !== null) this.#options.releases.release(ended.releaseQueue, ended.poolId);
    conclude(this.#options, ended, ended.outcome, ended.known === "lost");
  }

  #makeLane<Ended extends Outcome>(spec: LaneSpec<Ended>): SettleLane<Ended> {
    const endedIn = this.endedIn.bind(this);
    return new SettleLane(new BatchWriter(spec, { ...this.#options, endedIn }), this.#options.onFlushed);
  }
}
