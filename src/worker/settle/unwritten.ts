import type { Job } from "../../job.ts";
import type { Outcome } from "../run/outcome.ts";
import type { EndedJob } from "./ended-job.ts";

/** What one lane has not written yet: it is added to `waiting`, and what another transaction holds ends in `held`. */
export interface LaneJobs<Ended extends Outcome = Outcome> {
  waiting: EndedJob<Ended>[];
  inFlight: readonly EndedJob<Ended>[];
  held: readonly EndedJob<Ended>[];
}

/** Jobs that have ended and whose outcome is not written yet. */
export class Unwritten {
  readonly #lanes: LaneJobs[] = [];

  /** How many are to be written next; without those that are held, which may take long. */
  get pending(): number {
    let pending = 0;
    for (const { waiting, inFlight } of this.#lanes) pending += waiting.length + inFlight.length;
    return pending;
  }

  addLane<Ended extends Outcome>(): LaneJobs<Ended> {
    const lane: LaneJobs<Ended> = { waiting: [], inFlight: [], held: [] };
    this.#lanes.push(lane);
    return lane;
  }

  jobs(): Job[] {
    return this.#all().map(({ outcome }) => outcome.job);
  }

  /** Those of these queues that do not release them with a statement other than the one for `batch`. */
  endedIn(queueIds: readonly number[], batch: readonly EndedJob[] = []): string[] {
    const queues = new Set<number | null>(queueIds);
    const own = new Set(batch);
    return this.#all()
      .filter((ended) => queues.has(ended.outcome.job.job_queue_id) && (!ended.isToRelease || own.has(ended)))
      .map(({ jobId }) => jobId);
  }

  #all(): EndedJob[] {
    return this.#lanes.flatMap(({ held, inFlight, waiting }) => [...held, ...inFlight, ...waiting]);
  }
}
