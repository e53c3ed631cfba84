import type { Job } from "../../job.ts";
import type { EndedJob } from "../settle/ended-job.ts";
import type { PlaceNotices } from "../settle/place-notices.ts";
import type { LentClaim } from "../settle/settle-and-claim.ts";
import type { Claimer } from "./claimer.ts";
import type { LimitedClaims } from "./limited-claims.ts";

export interface FreedPlacesOptions {
  readonly limits: LimitedClaims;
  readonly notices: PlaceNotices;
  readonly claimer: Pick<Claimer, "lend" | "nudgeLimited">;
  readonly poolId: () => string;
  /** False if the statement that settles must not claim. */
  readonly mayLend: () => boolean;
}

/** Sees to it that places which our jobs free in limits are taken again: by the statement that frees them, by our next claim, or by others. */
export class FreedPlaces {
  readonly #options: FreedPlacesOptions;
  /** Jobs whose places went to the claim that was lent. */
  readonly #lent = new WeakSet<Job>();
  #hasLent = false;

  constructor(options: FreedPlacesOptions) {
    this.#options = options;
  }

  /** A job has ended; if its task is limited, it has freed a place. */
  freedBy(job: Job): void {
    const { limits, notices, claimer } = this.#options;
    if (!limits.isLimited(job.task_id) || (this.#hasLent && this.#lent.delete(job))) return;
    notices.freed(job.task_id);
    claimer.nudgeLimited();
  }

  /** A claim for the statement that settles these jobs, if the pool waits for their places. */
  lend(ended: readonly EndedJob[]): LentClaim | undefined {
    const { limits, notices, claimer, poolId, mayLend } = this.#options;
    if (!limits.isUsed || !mayLend() || ended[0]?.poolId !== poolId()) return undefined;
    const isFreeing = ({ outcome }: EndedJob): boolean => limits.isLimited(outcome.job.task_id);
    const claim = ended.some(isFreeing) ? claimer.lend() : undefined;
    if (!claim) return undefined;
    const onAnswer: LentClaim["onAnswer"] = async (row, freed) => {
      for (const { outcome } of row ? freed.filter(isFreeing) : []) {
        this.#lent.add(outcome.job);
        this.#hasLent = true;
        notices.freed(outcome.job.task_id);
      }
      await claim.onAnswer(row, freed);
    };
    return { ...claim, onAnswer };
  }
}
