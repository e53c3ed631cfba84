import type { KeepRules } from "../../kept-history.ts";
import { queueMicrotask } from "../../util/timers.ts";
import type { Outcome } from "../run/outcome.ts";
import { announceEnd } from "./announce.ts";
import { BatchWriter, type BatchWriterOptions } from "./batch-writer.ts";
import { conclude } from "./conclude.ts";
import type { EndedJob } from "./ended-job.ts";
import { type LaneDelays, type LaneName, type LaneSpec, laneByKind, makeLaneSpecs, type OutcomeIn } from "./lanes.ts";
import { SettleLane } from "./settle-lane.ts";

export interface SettlerOptions extends LaneDelays, BatchWriterOptions {
  readonly keepRules: KeepRules;
  /** Fewer outcomes are waiting to be written than before. */
  readonly onFlushed: () => void;
}

/** Takes how a job ended: announces it, and puts it into the lane that writes it. */
export class Settler {
  readonly #options: SettlerOptions;
  readonly #lanes: { readonly [Name in LaneName]: SettleLane<OutcomeIn<Name>> };

  constructor(options: SettlerOptions) {
    this.#options = options;
    const { completing, failing, ruling } = makeLaneSpecs(options, options.keepRules);
    this.#lanes = {
      completing: this.#makeLane(completing),
      failing: this.#makeLane(failing),
      ruling: this.#makeLane(ruling),
    };
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
    await Promise.all(Object.values(this.#lanes).map((lane) => lane.idle()));
  }

  /** Nothing is to be written, except that its queue may still be locked for us. */
  #concludeKnown(ended: EndedJob): void {
    if (ended.releaseQueue !== null) this.#options.releases.release(ended.releaseQueue, ended.poolId);
    conclude(this.#options, ended, ended.outcome, ended.known === "lost");
  }

  #makeLane<Ended extends Outcome>(spec: LaneSpec<Ended>): SettleLane<Ended> {
    const { unwritten, onFlushed } = this.#options;
    return new SettleLane(unwritten.addLane(), new BatchWriter(spec, this.#options), spec.delayMs, onFlushed);
  }
}
