/** What a claim may take. */
export interface Room {
  /** How many jobs would find a place. */
  readonly jobs: number;
  /** How many of them would start at once. */
  readonly idle: number;
  /** How many of those may be of one named queue. */
  readonly perQueue: number;
}

/** Who claims, and for what. */
export interface Claimant {
  readonly poolId: string;
  readonly workerNames: readonly string[];
  readonly taskIds: readonly number[];
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  readonly clock: Date | null;
}
